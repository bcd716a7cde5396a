"""Ledgers of test evaluations ("openings"): one line per evaluation on a test split.

A record per run does not reveal that forty runs were evaluated on the same test split and the best was kept. A study
has a ledger of its own, which is published with it. The user's ledger (`$FEDREUSE_HOME/test-openings.jsonl`) counts
evaluations in all folders, by the digest of the test examples; each of its lines holds the hash of the one before. Both
are written before the examples are handed out, so that no evaluation is missing in them.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from fedreuse.core.bounded import json_lines, read_json, read_yaml
from fedreuse.core.errors import RunDirectoryError
from fedreuse.store.archive import opened
from fedreuse.store.chain import append, read_chain
from fedreuse.store.manifest import EXPORTED

__all__ = [
    "LEDGER_FILE",
    "RECORD_FILE",
    "SplitOpening",
    "evaluations_of",
    "evaluations_text",
    "note_opening",
    "openings_behind",
    "openings_elsewhere",
    "read_openings",
    "selection_of",
    "user_ledger",
]

LEDGER_FILE = "test-openings.jsonl"
"""The ledger."""
RECORD_FILE = "test-opened.json"
"""The record of a run's own test evaluation."""
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


def user_ledger() -> Path:
    """Return the user's ledger: below FEDREUSE_HOME, else in the user's home."""
    return Path(os.environ.get("FEDREUSE_HOME") or Path.home() / ".fedreuse") / LEDGER_FILE


def note_opening(run: Path, config: Mapping[str, Any], run_id: str, digest: str, model: str) -> None:
    """Add an evaluation to the user's ledger, and to that of the study that a run belongs to; a repeated one is not.

    Raises:
        RunDirectoryError: A ledger is damaged or cannot be written; the test split then stays closed.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    opening = SplitOpening(config["task"]["name"], digest, selection_of(config), run_id, run.name, model, now)
    own, folder = user_ledger(), _folder_of(run)
    try:
        own.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        append(own, lambda known: [] if _is_noted(opening, known) else [asdict(opening)], mode=0o600)
    except OSError as error:
        raise _not_recorded(own, error, "make the file writable, or set FEDREUSE_HOME to another folder") from None
    if folder is None:
        return
    path = folder / LEDGER_FILE
    try:
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # runs of a study may end at the same time
            if opening.look in {one.look for one in _read(path)}:
                return
            file.truncate(len(_whole_lines(path)))  # a line that a crash cut had no evaluation after it
            file.write(json.dumps(asdict(opening)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _not_recorded(path, error, "make the file writable") from None


def _is_noted(opening: SplitOpening, known: Iterable[Mapping[str, Any]]) -> bool:
    return opening.look in {(entry.get("digest"), entry.get("run_id"), entry.get("model")) for entry in known}


def _not_recorded(path: Path, error: OSError, remedy: str) -> RunDirectoryError:
    return RunDirectoryError(
        f"{path}: the test evaluation cannot be recorded ({error}), so the test split stays closed; {remedy}, then "
        "continue with resume=True"
    )


def openings_behind(runs: Iterable[Path]) -> list[SplitOpening]:
    """Return all recorded evaluations on the test splits of some runs: their own, and those of their studies."""
    places = list(runs)
    own = [opening for place in places if (opening := _own(place)) is not None]
    found = {opening.look: opening for opening in own}
    for folder in {folder for place in places if (folder := _folder_of(place)) is not None}:
        found |= {opening.look: opening for opening in read_openings(folder)}
    digests = {opening.digest for opening in own}
    return [opening for opening in found.values() if opening.digest in digests]


def openings_elsewhere(runs: Iterable[Path]) -> list[SplitOpening]:
    """Return the user's other evaluations on the test splits of some runs, in whatever folder.

    Runs of an export are left out: it lists the evaluations that its author had made by then.
    """
    local = [place for place in runs if opened(place) == place and not (place / EXPORTED).exists()]
    behind = openings_behind(local)
    known, digests = {opening.look for opening in behind}, {opening.digest for opening in behind}
    noted = _parse(read_chain(user_ledger()), user_ledger()) if digests else []
    return [opening for opening in noted if opening.digest in digests and opening.look not in known]


def evaluations_of(runs: Iterable[Path]) -> str:
    """Return sentences that count the evaluations of the test sets of some runs: in their studies, and in all."""
    places = list(runs)
    behind, elsewhere = openings_behind(places), openings_elsewhere(places)
    text = evaluations_text(behind)
    return text if not elsewhere else f"{text} In all folders of this user: {_by_split([*behind, *elsewhere])}."


def evaluations_text(openings: Iterable[SplitOpening]) -> str:
    """Return a sentence that counts the evaluations of each test set; empty if there are none."""
    counted = _by_split(openings)
    return f"Test sets evaluated: {counted}." if counted else ""


def _by_split(openings: Iterable[SplitOpening]) -> str:
    by_split: dict[tuple[str, str], list[SplitOpening]] = {}
    for opening in openings:
        by_split.setdefault((opening.dataset, opening.digest), []).append(opening)
    return "; ".join(f"{name} {_counted(same_split)}" for (name, _), same_split in by_split.items())


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
    try:
        return _parse(json_lines(_whole_lines(path)), path)
    except ValueError as error:
        raise _not_a_record(path, error) from None


def _parse(entries: Iterable[Any], path: Path) -> list[SplitOpening]:
    known = {field.name for field in fields(SplitOpening)}
    try:
        return [SplitOpening(**{key: str(part) for key, part in entry.items() if key in known}) for entry in entries]
    except (TypeError, AttributeError) as error:
        raise _not_a_record(path, error) from None


def _not_a_record(path: Path, error: Exception) -> RunDirectoryError:
    return RunDirectoryError(f"{path}: not a record of test evaluations ({error}); restore the file from a copy")


def _whole_lines(path: Path) -> bytes:
    """Return the file up to its last line feed."""
    content = opened(path).read_bytes()
    return content[: content.rfind(b"\n") + 1]
