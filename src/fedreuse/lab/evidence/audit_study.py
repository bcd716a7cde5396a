"""Checks of a study as a whole: coverage, one code version, plan before results, recorded test evaluations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

from fedreuse.core.errors import RunDirectoryError
from fedreuse.lab.evidence.anchors import check_anchor
from fedreuse.lab.plans.record import Entry, PlanRecord, logged, read_plan
from fedreuse.store.archive import opened
from fedreuse.store.chain import read_chain
from fedreuse.store.code_versions import count_versions, several_versions
from fedreuse.store.consistency import Check
from fedreuse.store.directory import RunDirectory
from fedreuse.store.manifest import EVIDENCE, compare, read_absent, read_manifest
from fedreuse.store.openings import evaluations_of, read_openings
from fedreuse.store.study_file import PLAN_FILE, PLAN_LOG, read_study

__all__ = ["check_export", "check_study", "one_version"]


@dataclass(frozen=True)
class _Study:
    """The folder of a study: its list of runs, and those that are complete."""

    place: Path
    listed: Sequence[Mapping[str, Any]]
    runs: Mapping[str, RunDirectory]
    absent: Collection[str]
    """Runs that an export declares as absent."""


def check_study(place: Path, absent: Collection[str] | None = None, anchor: Path | None = None) -> Iterator[Check]:
    """Run all checks of a study; its runs have checks of their own.

    Args:
        place: The folder of the study.
        absent: Folders of runs that may be absent; None: those that an export declares as absent.
        anchor: A file with a head of the log of its plans.
    """
    try:
        listed = read_study(place)["runs"]
        declared = read_absent(place) if absent is None else absent
        runs = {str(entry["folder"]): RunDirectory(place / entry["folder"]) for entry in listed}
    except (RunDirectoryError, LookupError, TypeError) as error:
        yield Check("list of runs", "failed", str(error))
        return
    study = _Study(place, listed, {name: run for name, run in runs.items() if run.is_complete}, declared)
    checks: dict[str, Callable[[_Study], Check]] = {
        "coverage": _coverage,
        "code": lambda study: one_version(study.runs.values()),
        "plan": _plan,
        "openings": _openings,
    }
    if opened(place / PLAN_FILE).exists():
        checks["anchor"] = lambda study: check_anchor(study.place, anchor)
    if opened(place / EVIDENCE).exists():
        checks["export"] = lambda study: check_export(study.place)
    for name, check in checks.items():
        yield _guarded(name, check, study)


def check_export(place: Path) -> Check:
    """Check that the files of an export match its list of digests."""
    digests = read_manifest(place, EVIDENCE) or {}
    wrong = compare(place, digests)
    if wrong:
        raise RunDirectoryError("; ".join(wrong[:3]))
    return Check("export", "ok", f"{len(digests)} files")


def one_version(runs: Iterable[RunDirectory]) -> Check:
    """Check that all runs come from one version of the code."""
    known = list(runs)
    if several := several_versions(known):
        raise RunDirectoryError(several)
    made = count_versions(known)
    return Check("code", "ok", ", ".join(f"fedreuse {version}, commit {commit}" for version, commit in made))


def _guarded(name: str, check: Callable[[_Study], Check], study: _Study) -> Check:
    """Return the result of a check; an error is a failed check."""
    try:
        return check(study)
    except (RunDirectoryError, LookupError, TypeError, ValueError) as error:
        return Check(name, "failed", str(error))


def _coverage(study: _Study) -> Check:
    """Check that every combination of the axes is listed, and that its run is complete with the listed run id."""
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
        run_id = study.runs[entry["folder"]].provenance["run_id"]
        if run_id != entry["run_id"]:
            raise RunDirectoryError(f"{entry['folder']} has run id {run_id}, but {entry['run_id']} is listed")
    shape = " x ".join(f"{len(labels)} {axis}" for axis, labels in axes.items())
    if study.absent:
        partial = f"partial: {len(study.runs)} of {len(study.listed)} runs ({shape}); absent: {', '.join(missing)}"
        return Check("coverage", "unverified", partial)
    return Check("coverage", "ok", f"{len(study.listed)} runs ({shape})")


def _plan(study: _Study) -> Check:
    record = read_plan(study.place)
    if record is None:
        return Check("plan", "ok", "none")
    planned = {str(run["run_id"]) for run in record.current.runs}
    listed = {str(entry["run_id"]) for entry in study.listed}
    if planned != listed:
        raise RunDirectoryError(f"runs that are only in the plan or only in the study: {len(planned ^ listed)}")
    first = record.entries[0]
    if first.complete_before:
        raise RunDirectoryError(f"runs that were complete before the plan was registered: {len(first.complete_before)}")
    registered = datetime.fromisoformat(first.registered)
    for name, run in study.runs.items():
        for when in _times(run):
            if datetime.fromisoformat(when) < registered:
                raise RunDirectoryError(f"{name} has time {when}, before the plan was registered ({first.registered})")
    logged_by = _check_log(study, record)
    amended = "".join(f"; amended {entry.registered}{_seen(entry)}" for entry in record.entries[1:])
    return Check("plan", "ok", f"{record.current.digest[:12]}, registered {first.registered}{amended}{logged_by}")


def _seen(entry: Entry) -> str:
    results = len(entry.complete_before) + len(entry.begun_before)
    return f" after {results} results, reported as exploratory" if results else ""


def _check_log(study: _Study, record: PlanRecord) -> str:
    """Compare the plans with their log and with the digest in every run; return a remark if there is no log."""
    digests = {name: run.provenance.get("plan") for name, run in study.runs.items()}
    noted = read_chain(study.place / PLAN_LOG)
    if not noted and not any(digests.values()):
        return "; registered by a version without a log"
    if noted != [logged(entry) for entry in record.entries]:
        raise RunDirectoryError(f"{PLAN_LOG} does not hold the plans of {PLAN_FILE}: one of them was changed")
    for name, run in study.runs.items():
        allowed = [
            entry.digest for entry in record.entries if _time(entry.registered) <= _time(run.provenance["started"])
        ]
        if digests[name] not in allowed:
            raise RunDirectoryError(
                f"{name} began under plan {str(digests[name])[:12]}, which is none of the plans registered by then"
            )
    return ""


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _times(run: RunDirectory) -> list[str]:
    """Return the times of a run's start and of its test evaluation, as far as they are known."""
    opening = run.opening or {}
    return [str(when) for when in (run.provenance.get("started"), opening.get("opened")) if when is not None]


def _openings(study: _Study) -> Check:
    recorded = {opening.look for opening in read_openings(study.place)}
    for name, run in study.runs.items():
        opening = run.opening
        if opening is None:
            continue
        look = str(opening["digest"]), str(run.provenance["run_id"]), str(opening["model"])
        if look not in recorded:
            raise RunDirectoryError(f"{name} evaluated the test set, but the ledger does not record it")
    behind = evaluations_of([run.path for run in study.runs.values()])
    return Check("openings", "ok", behind or "the test set was not evaluated")
