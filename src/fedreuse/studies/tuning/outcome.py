"""Outcome of a search: the rule, all trials, the choice, and configurations that are ready to run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import yaml

from fedreuse.core.bounded import read_json
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.files import write_whole
from fedreuse.core.names import relative_name
from fedreuse.store.archive import opened
from fedreuse.studies.tuning.rules import Rule, Trial

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fedreuse.studies.tuning.space import Space

__all__ = ["OUTCOME_FILE", "Outcome", "conclude", "read_trials"]

OUTCOME_FILE = "outcome.json"


@dataclass(frozen=True)
class Outcome:
    """Outcome of a search by a rule; `configurations` has a file for each chosen trial."""

    rule: Rule
    chosen: tuple[Trial, ...]
    trials: tuple[Trial, ...]
    configurations: tuple[Path, ...]

    def plain(self) -> dict[str, Any]:
        """Return the outcome as plain data, for JSON.

        `is_feasible` says whether the rule may choose a trial; `retention` is there for the rule of this name.
        """
        feasible, kept = self.rule.feasible(self.trials), self.rule.retentions(self.trials)
        return {
            "chosen": [trial.number for trial in self.chosen],
            "configurations": [path.name for path in self.configurations],
            "trials": [
                {
                    **asdict(trial),
                    "is_feasible": trial in feasible,
                    **({"retention": kept[trial.number]} if trial.number in kept else {}),
                }
                for trial in self.trials
            ],
        }


def conclude(space: Space, trials: Sequence[Trial], out: Path) -> Outcome:
    """Apply the rule, and write the outcome and the chosen configurations.

    Raises:
        RunError: No trial can be chosen; the outcome then lists the trials only.
    """
    head = {"space": space.name, "digest": space.digest, "rule": asdict(space.rule), "seeds": list(space.seeds)}
    _write(out / OUTCOME_FILE, {**head, **Outcome(space.rule, (), tuple(trials), ()).plain()})
    chosen = space.rule.choose(trials, [measure.goal for measure in space.objectives])
    files = []
    for trial in chosen:
        name = "chosen.yaml" if len(chosen) == 1 else f"chosen-{trial.number:03d}.yaml"
        files.append(out / name)
        comment = (
            f"# Chosen by the rule {space.rule.name} of {space.name}, trial {trial.number}, on development seeds.\n"
        )
        plain = yaml.safe_dump(space.frozen(trial.params).to_plain(), sort_keys=False)
        write_whole(files[-1], (comment + plain).encode())
    outcome = Outcome(space.rule, tuple(chosen), tuple(trials), tuple(files))
    _write(out / OUTCOME_FILE, {**head, **outcome.plain()})
    return outcome


def read_trials(place: Path) -> tuple[Mapping[str, Any], tuple[Trial, ...]]:
    """Read `outcome.json` of a search; return its content and its trials.

    Raises:
        RunDirectoryError: The search has no outcome yet, or the file is not valid.
    """
    path = place / OUTCOME_FILE
    try:
        content = read_json(opened(path))
        trials = tuple(_trial(trial) for trial in content["trials"])
        for name in (*content["configurations"], *(name for trial in trials for name in trial.runs)):
            if len(relative_name(name).parts) > 1:
                raise ValueError(f"{name!r} is no file or folder directly in it")
        return content, trials
    except FileNotFoundError:
        raise RunDirectoryError(f"{place} has no {OUTCOME_FILE} yet; `fedreuse tune` continues the search") from None
    except (OSError, ValueError, LookupError, TypeError, RunDirectoryError) as error:
        raise RunDirectoryError(
            f"{path} is not the outcome of a search ({error}); `fedreuse tune` in its folder writes it again"
        ) from None


def _trial(plain: Mapping[str, Any]) -> Trial:
    parts: dict[str, Any] = {part.name: plain[part.name] for part in fields(Trial)}
    parts |= {name: tuple(part) for name, part in parts.items() if isinstance(part, list)}
    return Trial(**parts)


def _write(path: Path, content: dict[str, Any]) -> None:
    write_whole(path, (json.dumps(content, indent=2) + "\n").encode())
