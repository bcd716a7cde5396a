"""The outcome of a search: the rule, every trial, the choice, and configurations that are ready to run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import yaml

from fedreuse.core.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fedreuse.tuning.rules import Trial
    from fedreuse.tuning.space import Space

__all__ = ["OUTCOME_FILE", "Outcome", "conclude"]

OUTCOME_FILE = "outcome.json"


@dataclass(frozen=True)
class Outcome:
    """What a search came to; `configurations` has a file for each choice."""

    chosen: tuple[Trial, ...]
    trials: tuple[Trial, ...]
    configurations: tuple[Path, ...]

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "chosen": [trial.number for trial in self.chosen],
            "configurations": [path.name for path in self.configurations],
            "trials": [{**asdict(trial), "is_feasible": trial.is_feasible} for trial in self.trials],
        }


def conclude(space: Space, trials: Sequence[Trial], out: Path) -> Outcome:
    """Apply the rule, and write the outcome and what it chose.

    Raises:
        RunError: No trial may be chosen; the outcome then lists the trials alone.
    """
    head = {"space": space.name, "digest": space.digest, "rule": asdict(space.rule), "seeds": list(space.seeds)}
    _write(out / OUTCOME_FILE, {**head, **Outcome((), tuple(trials), ()).plain()})
    chosen = space.rule.choose(trials, [measure.goal for measure in space.objectives])
    files = []
    for trial in chosen:
        name = "chosen.yaml" if len(chosen) == 1 else f"chosen-{trial.number:03d}.yaml"
        files.append(out / name)
        said = f"# Chosen by the rule {space.rule.name} of {space.name}, trial {trial.number}, on development seeds.\n"
        plain = yaml.safe_dump(space.frozen(trial.params).to_plain(), sort_keys=False)
        write_whole(files[-1], (said + plain).encode())
    outcome = Outcome(tuple(chosen), tuple(trials), tuple(files))
    _write(out / OUTCOME_FILE, {**head, **outcome.plain()})
    return outcome


def _write(path: Path, content: dict[str, Any]) -> None:
    write_whole(path, (json.dumps(content, indent=2) + "\n").encode())
