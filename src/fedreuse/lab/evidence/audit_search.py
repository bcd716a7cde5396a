"""What is asked of a search: the space has its digest, the rule came first, trials and choice follow from the runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from fedreuse.core.errors import ConfigError, RunDirectoryError, RunError
from fedreuse.core.files import YAML_LOADER
from fedreuse.lab.evidence.audit_study import check_export, one_version
from fedreuse.store.archive import opened
from fedreuse.store.consistency import Check, same
from fedreuse.store.directory import RunDirectory
from fedreuse.store.manifest import EVIDENCE
from fedreuse.store.names import relative_name
from fedreuse.studies.tuning.judging import judge
from fedreuse.studies.tuning.outcome import read_trials
from fedreuse.studies.tuning.rules import Trial
from fedreuse.studies.tuning.space import Space
from fedreuse.studies.tuning.space_record import RUNS_FOLDER, SpaceRecord, read_space

__all__ = ["check_search", "runs_of_search"]

_NOT_COMPARED = ("executor", "server_store", "checkpoint_every", "listeners", "keep")
"""What a space need not say, and no result depends on."""


@dataclass(frozen=True)
class _Search:
    """A search's folder: what was written before the first trial, and what the trials came to."""

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
    """The run directories behind the complete trials of a search, each once."""
    names = dict.fromkeys(name for trial in read_trials(place)[1] if trial.state == "complete" for name in trial.runs)
    return [place / RUNS_FOLDER / name for name in names]


def check_search(place: Path) -> Iterator[Check]:
    """Every check of a search; its runs have checks of their own."""
    try:
        search = _Search(place, read_space(place), *read_trials(place))
    except RunDirectoryError as error:
        yield Check("outcome", "failed", str(error))
        return
    yield _looked("space", _space, search)
    looks = {"rule": _rule, "trials": _trials, "choice": _choice, "code": _code}
    for name, look in (looks | ({"export": _export} if opened(place / EVIDENCE).exists() else {})).items():
        yield _looked(name, look, search)


def _looked(name: str, look: Callable[[_Search], Check], search: _Search) -> Check:
    try:
        return look(search)
    except ConfigError as error:  # the digest fits, so this is the space that was searched
        return Check(name, "unverified", f"the space names what is not known here ({error})")
    except RunDirectoryError as error:
        return Check(name, "failed", str(error))
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        return Check(name, "failed", f"what it says is not what a search writes ({type(error).__name__}: {error})")


def _space(search: _Search) -> Check:
    if search.record.definition is None:
        return Check("space", "unverified", "only its digest was written; `fedreuse tune` again adds the space itself")
    space = search.space
    return Check("space", "ok", f"{space.size} trials ({space.sampler}), seeds {', '.join(map(str, space.seeds))}")


def _rule(search: _Search) -> Check:
    """The rule stood in the file before the first trial, and is the one that the outcome names."""
    record, outcome = search.record, search.outcome
    same("digest of the space", record.digest, outcome["digest"])
    same("rule", record.rule, outcome["rule"])
    if record.definition is not None:
        same("rule", asdict(search.space.rule), record.rule)
    facts = [
        search.run(name).provenance for trial in search.trials for name in trial.runs if search.run(name).is_complete
    ]
    said = f"{record.rule['name']} ({record.digest[:12]})"
    if record.registered is None:
        code = {str((one.get("code") or {}).get("commit"))[:12]: one.get("command", ["?"]) for one in facts}
        where = "; ".join(f"`{' '.join(words[1:3])}` of commit {commit}" for commit, words in code.items())
        return Check(
            "rule", "recorded", f"{said}; no time was written, and the runs name {where}: its file says the rule"
        )
    registered = datetime.fromisoformat(record.registered)
    for one in facts:
        if datetime.fromisoformat(one["started"]) < registered:
            raise RunDirectoryError(
                f"run {one['run_id']} started {one['started']}, before the rule was registered ({record.registered})"
            )
    first = min((one["started"] for one in facts), default="never")
    return Check("rule", "ok", f"{said}, registered {record.registered}, first run started {first}")


def _trials(search: _Search) -> Check:
    """Every trial of the space is there, tries what the space says, and has the numbers that its runs give."""
    space, trials = search.space, search.trials
    same("the list of trials", [trial.number for trial in trials], list(range(space.size)))
    for trial in trials:
        if space.sampler == "grid":
            same(f"settings of trial {trial.number}", space.grid()[trial.number], dict(trial.params))
        if trial.state == "complete":
            _judged_again(search, trial)
    states = [trial.state for trial in trials]
    return Check("trials", "ok", ", ".join(f"{states.count(one)} {one}" for one in dict.fromkeys(states)))


def _judged_again(search: _Search, trial: Trial) -> None:
    planned, names, runs = search.space.runs(trial.params), iter(trial.runs), {}
    for cell, configs in planned.items():
        runs[cell] = [search.run(name) for _, name in zip(configs, names, strict=False)]
        for config, run in zip(configs, runs[cell], strict=True):
            if not run.is_complete:
                raise RunDirectoryError(f"run {run.path.name} of trial {trial.number} is missing or incomplete")
            same("run id", run.provenance["run_id"], run.path.name)
            _same_settings(run.config, config.to_plain(), f"run {run.path.name} of trial {trial.number}")
    found = judge(search.space, runs)
    for name in ("values", "excess", "cells"):
        same(f"{name} of trial {trial.number}", getattr(found, name), getattr(trial, name))


def _same_settings(stored: Mapping[str, Any], planned: Mapping[str, Any], where: str) -> None:
    """Compare settings that both have: configurations of later versions may have more keys."""
    for key in stored.keys() & planned.keys() - set(_NOT_COMPARED):
        if isinstance(stored[key], Mapping) and isinstance(planned[key], Mapping):
            _same_settings(stored[key], planned[key], f"{where}: {key}")
        else:
            same(f"{where}: {key}", stored[key], planned[key])


def _choice(search: _Search) -> Check:
    """The rule, applied again, picks the same trials, and their configurations are what was frozen."""
    space, outcome = search.space, search.outcome
    try:
        chosen = space.rule.choose(search.trials, [measure.goal for measure in space.objectives])
    except RunError:
        chosen = []
    same("the choice", [trial.number for trial in chosen], outcome["chosen"])
    for trial, name in zip(chosen, outcome["configurations"], strict=True):
        frozen = yaml.load(opened(search.place / relative_name(name)).read_bytes(), YAML_LOADER)
        _same_settings(frozen, space.frozen(trial.params).to_plain(), name)
    told = "; ".join(json.dumps(dict(trial.params)) for trial in chosen)
    return Check("choice", "ok", told or "no trial may be chosen")


def _code(search: _Search) -> Check:
    return one_version([RunDirectory(path) for path in runs_of_search(search.place)])


def _export(search: _Search) -> Check:
    return check_export(search.place)
