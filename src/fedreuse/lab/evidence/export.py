"""The compact evidence of a study or search: everything but models and other bulk, for a repository of results."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.core.checked import with_check
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.files import write_whole
from fedreuse.lab.evidence.audit import audit_folder
from fedreuse.lab.evidence.audit_search import runs_of_search
from fedreuse.store.directory import RunDirectory
from fedreuse.store.manifest import EVIDENCE, EXPORTED, MANIFEST, ROWS_FILE, digests_of, is_bulk, read_manifest
from fedreuse.store.openings import LEDGER_FILE
from fedreuse.store.study_file import PLAN_FILE, STUDY_FILE, read_study
from fedreuse.studies.tuning.outcome import OUTCOME_FILE, read_trials
from fedreuse.studies.tuning.space_record import SPACE_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Evidence", "export_results"]

_NUMBERS = ("rounds", "test_score", "validation_score", "seconds", "model_digest")
_OF_STUDY = (STUDY_FILE, PLAN_FILE, LEDGER_FILE)
_KINDS = (".yaml", ".json", ".jsonl", ".parquet")
_OF_RUN = (MANIFEST, "COMPLETE", "deployment.json", "meter.json")
"""What an export keeps of a run beside the artifacts of its manifest."""


@dataclass(frozen=True)
class Evidence:
    """An export: where it lies, of how many runs, how large it is, what nobody vouches for, and which runs it lacks."""

    path: Path
    runs: int
    nbytes: int
    unverified: tuple[str, ...]
    absent: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Content:
    """What an export takes: files of the folder, runs by their folders, and what it says it is without."""

    files: tuple[str, ...]
    runs: tuple[str, ...]
    rows: str | None = None
    absent: tuple[str, ...] = ()


def export_results(source: str | Path, out: str | Path, *, admit_partial: bool = False) -> Evidence:
    """Copy the evidence of a study or of a search, without models and other bulk.

    Of a study: plan, list of runs, openings. Of a search: the space with its rule, the outcome with every trial, the
    frozen choice. Of each run behind them its configuration, provenance, schedule, manifest, metrics, ledger, events,
    summary and opening. The export is audited, compared and shown like its source; what is left out stays recorded by
    its digest.

    Args:
        source: The folder of a study, every run of it complete; or of a search with its outcome.
        out: A folder that does not exist yet, or is empty.
        admit_partial: Export a study that is not complete, too. The export names the runs that it is without; audits
            call its coverage partial, tables say so, and it is never green.

    Returns:
        Where the export lies, its runs, its size in bytes, which audits are unverified, and which runs are absent.

    Raises:
        RunDirectoryError: The source fails its audit, with the first reason; or `out` cannot be written.

    Example:
        >>> from fedreuse.lab.evidence.export import export_results
        >>> export_results("runs/confirmed", "results/confirmed").nbytes  # doctest: +SKIP
        1834021
    """
    place, target = Path(source), Path(out)
    content = _of_search(place) if (place / SPACE_FILE).exists() else _of_study(place, admit_partial)
    audits = list(audit_folder(place, content.absent))
    for one in (one for one in audits if one.verdict == "red"):
        reason = next(f"{check.name}: {check.said}" for check in one.checks if check.verdict == "failed")
        raise RunDirectoryError(
            f"{one.path} fails its audit, and what fails is no evidence ({reason}); see `fedreuse audit {place}`"
            + ("; --admit-partial exports the complete runs of a study, marked" if "incomplete" in reason else "")
        )
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise RunDirectoryError(f"{target} is there already, and nothing is written over; choose another `out`")
    try:
        for folder in content.runs:
            _copy_run(place / folder, target / folder)
        for name in content.files:
            shutil.copyfile(place / name, target / name)
        if content.rows is not None:
            write_whole(target / ROWS_FILE, content.rows.encode())
        write_whole(target / EVIDENCE, _evidence_text(target, content).encode())
    except OSError as error:
        raise RunDirectoryError(f"{target} could not be written ({error}); free some disk space") from None
    size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    unverified = tuple(one.path.name for one in audits if one.verdict == "unverified")
    return Evidence(target, len(content.runs), size, unverified, content.absent)


def _of_study(place: Path, admit_partial: bool) -> _Content:
    listed = read_study(place)["runs"]
    absent = [str(one["folder"]) for one in listed if not RunDirectory(place / one["folder"]).is_complete]
    if len(absent) == len(listed):
        raise RunDirectoryError(
            f"{place}: no run of the study is complete, so that there is nothing to export; the command that began "
            "the study goes on with it"
        )
    there = [one for one in listed if one["folder"] not in absent]
    rows = _rows_text(place, there)
    files = tuple(name for name in _OF_STUDY if (place / name).exists())
    return _Content(files, tuple(one["folder"] for one in there), rows, tuple(absent) if admit_partial else ())


def _of_search(place: Path) -> _Content:
    outcome, _ = read_trials(place)
    runs = tuple(str(path.relative_to(place)) for path in runs_of_search(place))
    return _Content((SPACE_FILE, OUTCOME_FILE, *(Path(name).name for name in outcome["configurations"])), runs)


def _copy_run(place: Path, target: Path) -> None:
    """The artifacts of the manifest without bulk; of an older run, which has none, the files of the same names."""
    target.mkdir(parents=True)
    older = [file.name for file in sorted(place.iterdir()) if file.suffix in _KINDS]
    for name in (*(read_manifest(place) or older), *_OF_RUN):
        if not is_bulk(name) and (place / name).exists():
            shutil.copyfile(place / name, target / name)
    (target / EXPORTED).touch()


def _evidence_text(target: Path, content: _Content) -> str:
    names = (*content.files, ROWS_FILE, *(f"{folder}/{MANIFEST}" for folder in content.runs))
    lacking = {"absent": list(content.absent)} if content.absent else {}
    return json.dumps(with_check({"files": digests_of(target, names), **lacking}), indent=2) + "\n"


def _rows_text(place: Path, listed: list[Mapping[str, Any]]) -> str:
    rows = list(_rows(place, listed))
    text = StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _rows(place: Path, listed: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in listed:
        directory = RunDirectory(place / entry["folder"])
        summary, seed = directory.summary, directory.config["seed"]
        numbers = {key: summary.get(key) for key in _NUMBERS}
        sent = {
            f"{way}_bytes ({name})": saving[f"{way}_bytes"]
            for name, saving in summary.get("communication", {}).items()
            for way in ("up", "down")
        }
        flops = summary.get("work", {}).get("flops")
        yield {"folder": entry["folder"], **entry.get("labels", {}), "seed": seed, **numbers, **sent, "flops": flops}
