"""What is asked of a study as a whole: coverage, one code version, the plan before results, openings counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.plans.record import read_plan
from fedreuse.store.archive import opened
from fedreuse.store.code_versions import count_versions, several_versions
from fedreuse.store.consistency import Check
from fedreuse.store.directory import RunDirectory
from fedreuse.store.manifest import EVIDENCE, compare, read_absent, read_manifest
from fedreuse.store.openings import evaluations_text, openings_behind, read_openings
from fedreuse.store.study_file import read_study

__all__ = ["check_export", "check_study", "one_version"]


@dataclass(frozen=True)
class _Study:
    """A study's folder: what it lists, and what is there and complete."""

    place: Path
    listed: Sequence[Mapping[str, Any]]
    runs: Mapping[str, RunDirectory]
    absent: Collection[str]
    """Runs that an export says it is without."""


def check_study(place: Path, absent: Collection[str] | None = None) -> Iterator[Check]:
    """Every check of a study; its runs have checks of their own.

    `absent` are folders of runs that need not be there; None: those that an export says it is without.
    """
    try:
        listed = read_study(place)["runs"]
        said = read_absent(place) if absent is None else absent
        there = {str(entry["folder"]): RunDirectory(place / entry["folder"]) for entry in listed}
    except (RunDirectoryError, LookupError, TypeError) as error:
        yield Check("list of runs", "failed", str(error))
        return
    study = _Study(place, listed, {name: run for name, run in there.items() if run.is_complete}, said)
    looks = {"coverage": _coverage, "code": _code, "plan": _plan, "openings": _openings}
    for name, look in (looks | ({"export": _export} if opened(place / EVIDENCE).exists() else {})).items():
        yield _looked(name, look, study)


def check_export(place: Path) -> Check:
    """Whether the files of an export are those that it was made with."""
    digests = read_manifest(place, EVIDENCE) or {}
    wrong = compare(place, digests)
    if wrong:
        raise RunDirectoryError("; ".join(wrong[:3]))
    return Check("export", "ok", f"{len(digests)} files")


def one_version(runs: Iterable[RunDirectory]) -> Check:
    """Whether all runs come from one version of the code."""
    known = list(runs)
    if several := several_versions(known):
        raise RunDirectoryError(several)
    made = count_versions(known)
    return Check("code", "ok", ", ".join(f"fedreuse {version}, commit {commit}" for version, commit in made))


def _looked(name: str, look: Callable[[_Study], Check], study: _Study) -> Check:
    try:
        return look(study)
    except (RunDirectoryError, LookupError, TypeError, ValueError) as error:
        return Check(name, "failed", str(error))


def _export(study: _Study) -> Check:
    return check_export(study.place)


def _coverage(study: _Study) -> Check:
    """Every combination of the axes is listed, present, complete, and the run that it says."""
    missing = [str(entry["folder"]) for entry in study.listed if entry["folder"] not in study.runs]
    if set(missing) != set(study.absent):
        missing = sorted(set(missing) ^ set(study.absent))
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise RunDirectoryError(f"missing or incomplete runs ({len(missing)}): {', '.join(missing[:3])}{more}")
    axes: dict[str, list[str]] = {}
    for entry in study.listed:
        for axis, label in entry["labels"].items():
            axes.setdefault(axis, [])
            axes[axis] += [label] if label not in axes[axis] else []
    known = {tuple(entry["labels"].get(axis) for axis in axes) for entry in study.listed}
    absent = [point for point in product(*axes.values()) if point not in known]
    if absent:
        raise RunDirectoryError(f"combinations that are not listed ({len(absent)}), such as {', '.join(absent[0])}")
    for entry in study.listed:
        if entry["folder"] in study.absent:
            continue
        found = study.runs[entry["folder"]].provenance["run_id"]
        if found != entry["run_id"]:
            raise RunDirectoryError(f"{entry['folder']} has run id {found}, and {entry['run_id']} is listed")
    shape = " x ".join(f"{len(labels)} {axis}" for axis, labels in axes.items())
    if study.absent:
        said = f"partial: {len(study.runs)} of {len(study.listed)} runs ({shape}); absent: {', '.join(missing)}"
        return Check("coverage", "unverified", said)
    return Check("coverage", "ok", f"{len(study.listed)} runs ({shape})")


def _code(study: _Study) -> Check:
    return one_version(study.runs.values())


def _plan(study: _Study) -> Check:
    record = read_plan(study.place)
    if record is None:
        return Check("plan", "ok", "none: nothing is claimed")
    planned = {str(one["run_id"]) for one in record.current.runs}
    listed = {str(entry["run_id"]) for entry in study.listed}
    if planned != listed:
        raise RunDirectoryError(f"runs in the plan or in the study, not in both: {len(planned ^ listed)}")
    first = record.entries[0]
    if first.complete_before:
        raise RunDirectoryError(f"runs that were complete before the plan was registered: {len(first.complete_before)}")
    registered = datetime.fromisoformat(first.registered)
    for name, run in study.runs.items():
        for when in _times(run):
            if datetime.fromisoformat(when) < registered:
                raise RunDirectoryError(f"{name} is of {when}, before the plan was registered ({first.registered})")
    amended = len(record.entries) - 1
    more = f", amended {amended} times: what is new is marked" if amended else ""
    return Check("plan", "ok", f"{record.current.digest[:12]}, registered {first.registered}{more}")


def _times(run: RunDirectory) -> list[str]:
    """When a run started, where that is known, and when it opened the test split."""
    opening = run.opening or {}
    return [str(when) for when in (run.provenance.get("started"), opening.get("opened")) if when is not None]


def _openings(study: _Study) -> Check:
    known = {opening.look for opening in read_openings(study.place)}
    for name, run in study.runs.items():
        opening = run.opening
        if opening is None:
            continue
        look = str(opening["digest"]), str(run.provenance["run_id"]), str(opening["model"])
        if look not in known:
            if not run.is_checked:
                return Check("openings", "unverified", f"the opening of {name} is not in the ledger")
            raise RunDirectoryError(f"{name} opened the test split, and the ledger of openings does not have it")
    behind = evaluations_text(openings_behind([run.path for run in study.runs.values()]))
    return Check("openings", "ok", behind or "no test split was opened")
