"""Checks of a search: the space matches its digest, the rule came first, trials and choice follow from the runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from fedreuse.core.bounded import read_yaml
from fedreuse.core.errors import ConfigError, RunDirectoryError, RunError
from fedreuse.core.names import inside
from fedreuse.lab.evidence.audit_study import check_export, one_version
from fedreuse.store.archive import opened
from fedreuse.store.consistency import Check, same
from fedreuse.store.directory import RunDirectory
from fedreuse.store.manifest import EVIDENCE
from fedreuse.studies.tuning.judging import judge
from fedreuse.studies.tuning.outcome import read_trials
from fedreuse.studies.tuning.rules import Trial
from fedreuse.studies.tuning.space import Space
from fedreuse.studies.tuning.space_record import RUNS_FOLDER, SpaceRecord, read_space

__all__ = ["check_search", "runs_of_search"]

_NOT_COMPARED = ("executor", "server_store", "checkpoint_every", "listeners", "keep")
"""Keys that a space may omit and that no result depends on."""


@dataclass(frozen=True)
class _Search:
    """The folder of a search: the space written before the first trial, and the outcome of the trials."""

    place: Path
    record: SpaceRecord
    outcome: Mapping[str, Any]
    trials: Sequence[Trial]

    @cached_property
    def space(self) -> Space:
        return self.record.space()

    def run(self, name: str) -> RunDirectory:
        return RunDirectory(self.place / RUNS_FOLDER / name)


def runs_of_search(place: Path) -> list[Path]:
    """Return the run directories of the complete trials of a search, each once."""
    names = dict.fromkeys(name for trial in read_trials(place)[1] if trial.state == "complete" for name in trial.runs)
    return [place / RUNS_FOLDER / name for name in names]


def check_search(place: Path) -> Iterator[Check]:
    """Run all checks of a search; its runs have checks of their own."""
    try:
        search = _Search(place, read_space(place), *read_trials(place))
    except RunDirectoryError as error:
        yield Check("outcome", "failed", str(error))
        return
    checks: dict[str, Callable[[_Search], Check]] = {
        "space": _space,
        "rule": _rule,
        "trials": _trials,
        "choice": _choice,
        "code": lambda search: one_version([RunDirectory(path) for path in runs_of_search(search.place)]),
    }
    if opened(place / EVIDENCE).exists():
        checks["export"] = lambda search: check_export(search.place)
    for name, check in checks.items():
        yield _guarded(name, check, search)


def _guarded(name: str, check: Callable[[_Search], Check], search: _Search) -> Check:
    """Return the result of a check; an error is a failed check."""
    try:
        return check(search)
    except ConfigError as error:  # the digest matches, so this is the space that was searched
        return Check(name, "unverified", f"the space has names that are unknown here ({error})")
    except RunDirectoryError as error:
        return Check(name, "failed", str(error))
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        return Check(name, "failed", f"its content is not that of a search ({type(error).__name__}: {error})")


def _space(search: _Search) -> Check:
    space = search.space
    return Check("space", "ok", f"{space.size} trials ({space.sampler}), seeds {', '.join(map(str, space.seeds))}")


def _rule(search: _Search) -> Check:
    """Check that the rule was stored before the first trial, and is the rule of the outcome."""
    record, outcome = search.record, search.outcome
    same("digest of the space", record.digest, outcome["digest"])
    same("rule", record.rule, outcome["rule"])
    same("rule", asdict(search.space.rule), record.rule)
    facts = [
        search.run(name).provenance for trial in search.trials for name in trial.runs if search.run(name).is_complete
    ]
    rule = f"{record.rule['name']} ({record.digest[:12]})"
    if record.registered is None:
        code = {str((fact.get("code") or {}).get("commit"))[:12]: fact.get("command", ["?"]) for fact in facts}
        where = "; ".join(f"`{' '.join(words[1:3])}` of commit {commit}" for commit, words in code.items())
        return Check("rule", "recorded", f"{rule}; no time was written; the runs come from {where}, which has the rule")
    registered = datetime.fromisoformat(record.registered)
    for fact in facts:
        if datetime.fromisoformat(fact["started"]) < registered:
            raise RunDirectoryError(
                f"run {fact['run_id']} started {fact['started']}, before the rule was registered ({record.registered})"
            )
    first = min((fact["started"] for fact in facts), default="never")
    return Check("rule", "ok", f"{rule}, registered {record.registered}, first run started {first}")


def _trials(search: _Search) -> Check:
    """Check that every trial of the space is present, with the settings of the space and the numbers of its runs."""
    space, trials = search.space, search.trials
    same("the list of trials", [trial.number for trial in trials], list(range(space.size)))
    for trial in trials:
        if space.sampler == "grid":
            same(f"settings of trial {trial.number}", space.grid()[trial.number], dict(trial.params))
        if trial.state == "complete":
            _check_trial(search, trial)
    states = [trial.state for trial in trials]
    return Check("trials", "ok", ", ".join(f"{states.count(one)} {one}" for one in dict.fromkeys(states)))


def _check_trial(search: _Search, trial: Trial) -> None:
    """Compare the runs of a trial with the space, and its numbers with those computed from the runs."""
    planned, names, runs = search.space.runs(trial.params), iter(trial.runs), {}
    for cell, configs in planned.items():
        runs[cell] = [search.run(name) for _, name in zip(configs, names, strict=False)]
        for config, run in zip(configs, runs[cell], strict=True):
            if not run.is_complete:
                raise RunDirectoryError(f"run {run.path.name} of trial {trial.number} is missing or incomplete")
            same("run id", run.provenance["run_id"], run.path.name)
            _same_settings(run.config, config.to_plain(), f"run {run.path.name} of trial {trial.number}")
    judged = judge(search.space, runs)
    for name in ("values", "excess", "cells"):
        same(f"{name} of trial {trial.number}", getattr(judged, name), getattr(trial, name))


def _same_settings(stored: Mapping[str, Any], planned: Mapping[str, Any], where: str) -> None:
    """Compare settings that both have: configurations of later versions may have more keys."""
    for key in stored.keys() & planned.keys() - set(_NOT_COMPARED):
        if isinstance(stored[key], Mapping) and isinstance(planned[key], Mapping):
            _same_settings(stored[key], planned[key], f"{where}: {key}")
        else:
            same(f"{where}: {key}", stored[key], planned[key])


def _choice(search: _Search) -> Check:
    """Check that the rule, applied again, chooses the same trials, and that their frozen configurations match."""
    space, outcome = search.space, search.outcome
    try:
        chosen = space.rule.choose(search.trials, [measure.goal for measure in space.objectives])
    except RunError:
        chosen = []
    same("the choice", [trial.number for trial in chosen], outcome["chosen"])
    for trial, name in zip(chosen, outcome["configurations"], strict=True):
        frozen = read_yaml(inside(opened(search.place), name))
        _same_settings(frozen, space.frozen(trial.params).to_plain(), name)
    settings = "; ".join(json.dumps(dict(trial.params)) for trial in chosen)
    return Check("choice", "ok", settings or "no trial satisfies the rule")
