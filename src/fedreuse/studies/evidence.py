"""The compact evidence of a study: everything but models and other bulk, for a repository of results."""

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
from fedreuse.runs.directory import RunDirectory
from fedreuse.runs.manifest import EVIDENCE, EXPORTED, MANIFEST, digests_of, is_bulk, read_manifest
from fedreuse.runs.openings import LEDGER_FILE
from fedreuse.runs.plan_record import PLAN_FILE
from fedreuse.runs.study_file import STUDY_FILE, read_study
from fedreuse.studies.audit import audit

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ROWS_FILE", "Evidence", "export_results"]

ROWS_FILE = "rows.csv"
"""A row per run, for spreadsheets; everything in it is also in the runs."""
_NUMBERS = ("rounds", "test_score", "validation_score", "seconds", "model_digest")
_OF_STUDY = (STUDY_FILE, PLAN_FILE, LEDGER_FILE)
_KINDS = (".yaml", ".json", ".jsonl", ".parquet")
_OF_RUN = (MANIFEST, "COMPLETE", "deployment.json", "meter.json")
"""What an export keeps of a run beside the artifacts of its manifest."""


@dataclass(frozen=True)
class Evidence:
    """An export: where it lies, of how many runs, how large it is, and what nobody vouches for."""

    path: Path
    runs: int
    nbytes: int
    unverified: tuple[str, ...]


def export_results(study: str | Path, out: str | Path) -> Evidence:
    """Copy the evidence of a study: plan, list of runs, openings, and of each run all but models and other bulk.

    The export is audited, compared and shown like the study itself. Whatever is left out stays recorded by its digest.

    Args:
        study: The folder of a study, every run of it complete.
        out: A folder that does not exist yet, or is empty.

    Returns:
        Where the export lies, its runs, its size in bytes, and which audits are unverified.

    Raises:
        RunDirectoryError: The study fails its audit, with the first reason; or `out` cannot be written.

    Example:
        >>> from fedreuse.studies.evidence import export_results
        >>> export_results("runs/confirmed", "results/confirmed").nbytes  # doctest: +SKIP
        1834021
    """
    place, target = Path(study), Path(out)
    listed = read_study(place)["runs"]
    audits = audit(place)
    for one in (one for one in audits if one.verdict == "red"):
        reason = next(f"{check.name}: {check.said}" for check in one.checks if check.verdict == "failed")
        raise RunDirectoryError(
            f"{one.path} fails its audit, and what fails is no evidence ({reason}); see `fedreuse audit {place}`"
        )
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise RunDirectoryError(f"{target} is there already, and nothing is written over; choose another `out`")
    try:
        for entry in listed:
            _copy_run(place / entry["folder"], target / entry["folder"])
        for name in (name for name in _OF_STUDY if (place / name).exists()):
            shutil.copyfile(place / name, target / name)
        write_whole(target / ROWS_FILE, _rows_text(place, listed).encode())
        write_whole(target / EVIDENCE, _evidence_text(target, listed).encode())
    except OSError as error:
        raise RunDirectoryError(f"{target} could not be written ({error}); free some disk space") from None
    size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    unverified = tuple(one.path.name for one in audits if one.verdict == "unverified")
    return Evidence(target, len(listed), size, unverified)


def _copy_run(place: Path, target: Path) -> None:
    """The artifacts of the manifest without bulk; of an older run, which has none, the files of the same names."""
    target.mkdir(parents=True)
    older = [file.name for file in sorted(place.iterdir()) if file.suffix in _KINDS]
    for name in (*(read_manifest(place) or older), *_OF_RUN):
        if not is_bulk(name) and (place / name).exists():
            shutil.copyfile(place / name, target / name)
    (target / EXPORTED).touch()


def _evidence_text(target: Path, listed: list[Mapping[str, Any]]) -> str:
    names = (*_OF_STUDY, ROWS_FILE, *(f"{entry['folder']}/{MANIFEST}" for entry in listed))
    return json.dumps(with_check({"files": digests_of(target, names)}), indent=2) + "\n"


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
