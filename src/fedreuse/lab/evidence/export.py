"""Export of the compact evidence of studies and searches: everything but models and other bulk."""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from fedreuse.core.checked import with_check
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.files import write_whole
from fedreuse.core.names import inside
from fedreuse.core.untrusted import cell
from fedreuse.lab.evidence.audit import Audit, audit, audit_folder
from fedreuse.lab.evidence.audit_search import runs_of_search
from fedreuse.lab.evidence.summary import summary_text
from fedreuse.lab.gate.probe import PROBES_FILE
from fedreuse.store.archive import SUFFIX, folders_in, opened, pack
from fedreuse.store.directory import RunDirectory
from fedreuse.store.manifest import EVIDENCE, EXPORTED, MANIFEST, ROWS_FILE, digests_of, is_bulk, read_manifest
from fedreuse.store.openings import LEDGER_FILE, openings_elsewhere
from fedreuse.store.study_file import PLAN_FILE, PLAN_LOG, STUDY_FILE, read_study
from fedreuse.studies.tuning.outcome import OUTCOME_FILE, read_trials
from fedreuse.studies.tuning.space_record import SPACE_FILE

__all__ = ["Evidence", "export_results"]

_NUMBERS = ("rounds", "test_score", "validation_score", "seconds", "model_digest")
_OF_STUDY = (STUDY_FILE, PLAN_FILE, PLAN_LOG, LEDGER_FILE)
_OF_RUN = (MANIFEST, "COMPLETE", "deployment.json", "meter.json")
"""Files of a run that an export keeps beside the artifacts of its manifest."""


@dataclass(frozen=True)
class Evidence:
    """An export that was written.

    Attributes:
        path: The archive or folder.
        runs: Number of runs in it.
        nbytes: Its size in bytes.
        unverified: Names of the runs, studies and searches in it whose audit is `unverified`.
        absent: Folders of the runs that a partial export lacks.
    """

    path: Path
    runs: int
    nbytes: int
    unverified: tuple[str, ...]
    absent: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Content:
    """Content of one exported folder: its own files, its runs by folder, and the runs it says it lacks."""

    files: tuple[str, ...]
    runs: tuple[str, ...] = ()
    rows: str | None = None
    absent: tuple[str, ...] = ()


def export_results(source: str | Path, out: str | Path, *, admit_partial: bool = False) -> Evidence:
    """Export the evidence of a study, of a search, or of a folder of these, without models and other bulk.

    Of a study: plan, list of runs, test evaluations. Of a search: the space with its rule, the outcome with every
    trial, the frozen choice. Of each run its configuration, provenance, schedule, manifest, metrics, ledger, events,
    summary and record of the test evaluation. Everything is audited before it is written. The export is audited,
    compared and shown like its source; artifacts that are left out stay recorded by their digests.

    Args:
        source: The folder of a study, every run of it complete; of a search with its outcome; of a gate study; or a
            folder of these.
        out: The archive to write, with the ending `.tar.zst`; a summary with the ending `.md` is written beside it.
            Another ending writes a folder. Nothing is overwritten.
        admit_partial: Also export a study that is not complete. The export names the runs that it lacks, and its audit
            is `unverified`.

    Raises:
        RunDirectoryError: The source fails its audit, with the first reason; or `out` exists or cannot be written.

    Example:
        >>> from fedreuse.lab.evidence.export import export_results
        >>> export_results("runs/confirmed", "results/confirmed.tar.zst").runs  # doctest: +SKIP
        10
    """
    place, target = Path(source), Path(out)
    parts = _parts(place, admit_partial)
    absent = {name: content.absent for name, content in parts.items()}
    audits = [found for name, content in parts.items() for found in _audited(place / name, content)]
    summary = target.with_name(target.name.removesuffix(SUFFIX) + ".md")
    is_archive = target.name.endswith(SUFFIX)
    if _is_taken(target) or (is_archive and summary.exists()):
        raise RunDirectoryError(f"{target} exists already and is not overwritten; choose another `out`")
    try:
        if is_archive:
            target.parent.mkdir(parents=True, exist_ok=True)
            size = _write_archive(place, target, summary, parts)
        else:
            _write_folders(place, target, parts)
            size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    except OSError as error:
        raise RunDirectoryError(f"{target} could not be written ({error}); free some disk space") from None
    unverified = tuple(found.path.name for found in audits if found.verdict == "unverified")
    runs = sum(len(content.runs) for content in parts.values())
    return Evidence(target, runs, size, unverified, tuple(name for names in absent.values() for name in names))


def _parts(place: Path, admit_partial: bool) -> dict[str, _Content]:
    """Return the content of every folder that is exported, by its name below the source."""
    inner = [folder for folder in folders_in(place) if _is_part(folder)]
    if _is_part(place) or not inner:
        return {"": _content(place, admit_partial)}
    return {folder.name: _content(folder, admit_partial) for folder in inner}


def _is_part(place: Path) -> bool:
    return any(opened(place / name).exists() for name in (STUDY_FILE, SPACE_FILE, PROBES_FILE))


def _content(place: Path, admit_partial: bool) -> _Content:
    if opened(place / SPACE_FILE).exists():
        return _of_search(place)
    if opened(place / PROBES_FILE).exists() and not opened(place / STUDY_FILE).exists():
        return _Content((PROBES_FILE,))
    return _of_study(place, admit_partial)


def _of_study(place: Path, admit_partial: bool) -> _Content:
    listed = read_study(place)["runs"]
    absent = [str(entry["folder"]) for entry in listed if not RunDirectory(place / entry["folder"]).is_complete]
    if len(absent) == len(listed):
        raise RunDirectoryError(
            f"{place}: no run of the study is complete, so there is nothing to export; repeat the command that started "
            "the study to continue it"
        )
    present = [entry for entry in listed if entry["folder"] not in absent]
    files = tuple(name for name in _OF_STUDY if opened(place / name).exists())
    runs = tuple(str(entry["folder"]) for entry in present)
    return _Content(files, runs, _rows_text(place, present), tuple(absent) if admit_partial else ())


def _of_search(place: Path) -> _Content:
    outcome, _ = read_trials(place)
    runs = tuple(str(path.relative_to(place)) for path in runs_of_search(place))
    return _Content((SPACE_FILE, OUTCOME_FILE, *outcome["configurations"]), runs)


def _audited(place: Path, content: _Content) -> list[Audit]:
    """Return the audits of one part; a failed one is an error."""
    audits = list(audit_folder(place, content.absent)) if content.runs else audit(place)
    for failed in (found for found in audits if found.verdict == "red"):
        reason = next(f"{check.name}: {check.said}" for check in failed.checks if check.verdict == "failed")
        raise RunDirectoryError(
            f"{failed.path} fails its audit and cannot be exported ({reason}); see `fedreuse audit {place}`"
            + ("; --admit-partial exports the complete runs of a study, marked" if "incomplete" in reason else "")
        )
    return audits


def _is_taken(target: Path) -> bool:
    return target.exists() and (not target.is_dir() or any(target.iterdir()))


def _write_archive(place: Path, target: Path, summary: Path, parts: Mapping[str, _Content]) -> int:
    """Write the folder beside its place, pack it, and describe the archive; return its size."""
    name = target.name.removesuffix(SUFFIX)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{name}.") as folder:
        _write_folders(place, Path(folder), parts)
        size = pack(Path(folder), target, name)
    write_whole(summary, summary_text(target).encode())
    return size


def _write_folders(place: Path, target: Path, parts: Mapping[str, _Content]) -> None:
    for name, content in parts.items():
        _write_folder(opened(place / name), target / name, content)


def _write_folder(place: Path, target: Path, content: _Content) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for folder in content.runs:
        _copy_run(inside(place, folder), inside(target, folder))
    for name in content.files:
        shutil.copyfile(inside(place, name), inside(target, name))
    if LEDGER_FILE in content.files:
        _add_other_openings(target / LEDGER_FILE, [place / folder for folder in content.runs])
    if content.rows is not None:
        write_whole(target / ROWS_FILE, content.rows.encode())
    if PROBES_FILE not in content.files:  # a gate study is one file that carries its own checksum
        write_whole(target / EVIDENCE, _evidence_text(target, content).encode())


def _add_other_openings(ledger: Path, runs: list[Path]) -> None:
    """Add the user's evaluations on the same test sets in other folders, so that readers can count them."""
    with ledger.open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(asdict(opening))}\n" for opening in openings_elsewhere(runs))


def _copy_run(place: Path, target: Path) -> None:
    """Copy the artifacts of the manifest without bulk."""
    target.mkdir(parents=True)
    for name in (*(read_manifest(place) or ()), *_OF_RUN):
        source = inside(place, name)
        if not is_bulk(name) and source.exists():
            shutil.copyfile(source, inside(target, name))
    (target / EXPORTED).touch()


def _evidence_text(target: Path, content: _Content) -> str:
    names = (*content.files, ROWS_FILE, *(f"{folder}/{MANIFEST}" for folder in content.runs))
    lacking = {"absent": list(content.absent)} if content.absent else {}
    return json.dumps(with_check({"files": digests_of(target, names), **lacking}), indent=2) + "\n"


def _rows_text(place: Path, listed: list[Mapping[str, Any]]) -> str:
    rows = list(_rows(place, listed))
    text = StringIO()
    keys = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(cell, keys))
    writer.writerows([cell(row.get(key, "")) for key in keys] for row in rows)
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
