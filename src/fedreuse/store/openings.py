"""Ledger of test evaluations ("openings"): one line per evaluation on a test split, kept in the folder of a study.

A record per run does not reveal that forty runs were evaluated on the same test split and the best was kept. The ledger
is written before the examples are handed out, so that no evaluation is missing in it.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from fedreuse.core.bounded import parse_json, read_json, read_yaml
from fedreuse.core.errors import RunDirectoryError
from fedreuse.store.archive import opened

__all__ = [
    "LEDGER_FILE",
    "RECORD_FILE",
    "SplitOpening",
    "evaluations_text",
    "note_opening",
    "openings_behind",
    "read_openings",
    "selection_of",
]

LEDGER_FILE = "test-openings.jsonl"
"""The ledger."""
RECORD_FILE = "test-opened.json"
"""The record of a run's own test evaluation."""
_RUNS_FOLDER = "runs"
"""Default folder of runs."""
_STUDY_FILES = (LEDGER_FILE, "study.json", "space.json")
_NO_SELECTION = ("seed", "executor", "client_store", "server_store", "checkpoint_every", "listeners", "test", "keep",
                 "development_seeds")  # fmt: skip


@dataclass(frozen=True)
class SplitOpening:
    """One evaluation on a test split.

    Attributes:
        dataset: The name of the dataset.
        digest: SHA-256 of the test examples; evaluations are counted by it.
        selection: Hash of the configuration without its seed, which tells configurations apart.
        run_id: Id of the configuration with its seed.
        run: Name of the run directory.
        model: SHA-256 of the tested model.
        opened: Time of the evaluation.
    """

    dataset: str
    digest: str
    selection: str
    run_id: str
    run: str
    model: str
    opened: str = ""

    def __post_init__(self) -> None:
        """Check that all fields are texts: they come from files."""
        if not all(isinstance(part, str) for part in asdict(self).values()):
            raise TypeError("a record of a test evaluation holds texts only")

    @property
    def look(self) -> tuple[str, str, str]:
        """Identity of the evaluation: a run that crashed and was resumed evaluates once."""
        return self.digest, self.run_id, self.model


def note_opening(run: Path, config: Mapping[str, Any], run_id: str, digest: str, model: str) -> None:
    """Add an evaluation to the ledger of the study or folder that a run belongs to; a repeated one adds nothing.

    Without a ledger, one is begun in a folder of runs, with the evaluations that the runs in it recorded.

    Raises:
        RunDirectoryError: The ledger is damaged or cannot be written; the test split then stays closed.
    """
    known = _folder_of(run)
    folder, before = (run.resolve().parent, _beside(run)) if known is None else (known, [])
    if known is None and not _may_begin(folder, bool(before)):
        return
    now = datetime.now(UTC).isoformat(timespec="seconds")
    opening = SplitOpening(config["task"]["name"], digest, selection_of(config), run_id, run.name, model, now)
    path = folder / LEDGER_FILE
    try:
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # runs of a study may end at the same time
            noted = {one.look for one in _read(path)}
            new = {one.look: one for one in (*before, opening) if one.look not in noted}
            if not new:
                return
            if known is None and not noted:  # users who may write runs into the folder must be able to add to it
                with suppress(PermissionError):  # another user has just created it
                    path.chmod(0o666 & folder.stat().st_mode)
            file.truncate(len(_whole_lines(path)))  # a line that a crash cut had no evaluation after it
            file.write(b"".join(json.dumps(asdict(one)).encode() + b"\n" for one in new.values()))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise RunDirectoryError(
            f"{path}: the test evaluation cannot be recorded ({error}), so the test split stays closed; make the file "
            "writable, then continue with resume=True"
        ) from None


def openings_behind(runs: Iterable[Path]) -> list[SplitOpening]:
    """Return all recorded evaluations on the test splits of some runs: their own, and those of their folders."""
    places = list(runs)
    own = [opening for place in places if (opening := _own(place)) is not None]
    found = {opening.look: opening for opening in own}
    for folder in {folder for place in places if (folder := _folder_of(place)) is not None}:
        found |= {opening.look: opening for opening in read_openings(folder)}
    digests = {opening.digest for opening in own}
    return [opening for opening in found.values() if opening.digest in digests]


def evaluations_text(openings: Iterable[SplitOpening]) -> str:
    """Return a sentence that counts the evaluations of each test set; empty if there are none."""
    by_split: dict[tuple[str, str], list[SplitOpening]] = {}
    for opening in openings:
        by_split.setdefault((opening.dataset, opening.digest), []).append(opening)
    parts = [f"{name} {_counted(same_split)}" for (name, _), same_split in by_split.items()]
    return f"Test sets evaluated: {'; '.join(parts)}." if parts else ""


def selection_of(config: Mapping[str, Any]) -> str:
    """Return a hash of the configuration without its seed and without keys that change no result."""
    chosen = {key: part for key, part in config.items() if key not in _NO_SELECTION}
    return sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:12]


def _counted(openings: list[SplitOpening]) -> str:
    count, selections = len(openings), len({opening.selection for opening in openings})
    times = "once" if count == 1 else f"{count} times"
    return f"{times} ({selections} configuration{'s' if selections > 1 else ''})"


def _folder_of(run: Path) -> Path | None:
    """Return the nearest folder above a run that belongs to a study or has a ledger; None if there is none."""
    above = opened(run).resolve().parents[:2]
    return next((folder for folder in above if any((folder / name).exists() for name in _STUDY_FILES)), None)


def _may_begin(folder: Path, has_opened: bool) -> bool:
    """Return whether to begin a ledger: the folder is named `runs`, or another run in it was evaluated on a test split.

    Never in a folder shared by all users, such as a temporary one, nor in one that cannot be written.
    """
    is_shared = bool(folder.stat().st_mode & stat.S_ISVTX)
    return (folder.name == _RUNS_FOLDER or has_opened) and not is_shared and os.access(folder, os.W_OK)


def _beside(run: Path) -> list[SplitOpening]:
    """Return the evaluations that the other runs in the folder of a run recorded, the earliest first."""
    place = run.resolve()
    others = (_own(file.parent) for file in place.parent.glob(f"*/{RECORD_FILE}") if file.parent != place)
    return sorted((one for one in others if one is not None), key=lambda one: (one.opened, one.run))


def _own(run: Path) -> SplitOpening | None:
    """Return the evaluation that a run itself recorded; None without one."""
    folder = opened(run)
    try:
        record, config = read_json(folder / RECORD_FILE), read_yaml(folder / "config.yaml")
        run_id = read_json(folder / "provenance.json")["run_id"]
        known = (record["digest"], selection_of(config), run_id, run.name, record["model"], record["opened"])
        return SplitOpening(config["task"]["name"], *known)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # no record, or a damaged one, which readers of the run report


def read_openings(folder: Path) -> list[SplitOpening]:
    """Return all lines of the ledger in a folder; empty without a ledger."""
    return _read(folder / LEDGER_FILE)


def _read(path: Path) -> list[SplitOpening]:
    if not opened(path).exists():
        return []
    known = {field.name for field in fields(SplitOpening)}
    openings = []
    for number, line in enumerate(_whole_lines(path).splitlines(), start=1):
        try:
            content = parse_json(line)
            openings.append(SplitOpening(**{key: str(part) for key, part in content.items() if key in known}))
        except (ValueError, TypeError, AttributeError) as error:
            raise RunDirectoryError(
                f"{path}, line {number}: not a record of a test evaluation ({error}); restore the file from a copy"
            ) from None
    return openings


def _whole_lines(path: Path) -> bytes:
    """Return the file up to its last line feed."""
    content = opened(path).read_bytes()
    return content[: content.rfind(b"\n") + 1]
