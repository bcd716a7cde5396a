"""Models, states and checkpoints that a run directory keeps: where they lie, and going back to one of them."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.files import write_whole
from fedreuse.robustness.privacy import SECRET_FILE
from fedreuse.store.directory import JOURNAL, RunDirectory
from fedreuse.store.journal import Journal
from fedreuse.store.manifest import MANIFEST
from fedreuse.store.openings import RECORD_FILE

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "best_file",
    "best_files",
    "checkpoint_file",
    "checkpoint_files",
    "go_back",
    "kept_models",
    "kept_states",
    "model_file",
    "state_file",
]

_MODELS, _STATES, _CHECKPOINTS = "models", "states", "checkpoints"
_BEST = "best-"
_LATER = ("COMPLETE", "STOPPED", "summary.json", MANIFEST, "metrics.jsonl", f"{JOURNAL}-wal", f"{JOURNAL}-shm")
"""Files that describe rounds after the one that a run goes back to."""


def go_back(run: str | Path, number: int) -> RunDirectory:
    """Make a kept state the last one of an untested run; later rounds are removed.

    Args:
        run: The run directory.
        number: A round whose state was kept (`keep.checkpoints`, `keep.states`).

    Returns:
        The run directory, unfinished; `run(config, ..., resume=True)` continues it.

    Raises:
        RunDirectoryError: No such state was kept, the test split was opened, the client records lie at real nodes, or
            noise that protects real clients would be used twice.

    Example:
        >>> from fedreuse import go_back, run
        >>> config = {"task": {"name": "digits", "clients": 4, "limit": 200, "partition": "iid"}, "network": "mlp",
        ...           "rounds": {"count": 3, "cohort": 2}, "test": "sealed", "keep": {"checkpoints": 2}}
        >>> model = run(config, "kept").summary["model_digest"]
        >>> len(go_back("kept", 2).metrics())
        2
        >>> run(config, "kept", resume=True).summary["model_digest"] == model
        True
    """
    directory = RunDirectory.open(run)
    path = directory.path
    if (path / RECORD_FILE).exists():
        raise RunDirectoryError(
            f"{path}: its test split was opened, so going back would be choosing by test scores; start a new run"
        )
    if (path / SECRET_FILE).exists():
        raise RunDirectoryError(
            f"{path}: its noise is drawn from {SECRET_FILE} by round. Rounds that run again with other replies would "
            "get the same noise, and the difference of the two models would have none; start a new run, which has a "
            "secret of its own"
        )
    if (path / "deployment.json").exists():
        raise RunDirectoryError(f"{path} ran on real nodes, whose records do not go back with it; start a new run")
    kept = kept_states(path)
    if number not in kept:
        known = f"kept are rounds {', '.join(map(str, sorted(kept)))}" if kept else "none was (keep.checkpoints: 3)"
        raise RunDirectoryError(f"{path}: the state of round {number} was not kept; {known}")
    with closing(Journal(kept[number])) as copy:
        copy.verify()
        if (copy.round_number, copy.origin) != (number, directory.origin):
            raise RunDirectoryError(
                f"{kept[number]} is not the state of round {number} of this run (it holds round {copy.round_number}); "
                "restore it from a copy, or go back to another round"
            )
    directory.lock()
    try:
        for name in _LATER:
            (path / name).unlink(missing_ok=True)
        write_whole(path / JOURNAL, kept[number].read_bytes())
        for later in (file for round_number, file in kept.items() if round_number > number):
            later.unlink(missing_ok=True)
        directory.log(f"went back to round {number}")
    finally:
        directory.release()
    return directory


def kept_states(path: Path) -> dict[int, Path]:
    """Return the kept copies of the journal by round; each holds the state after its round."""
    return {_round_of(file): file for name in (_CHECKPOINTS, _STATES) for file in (path / name).glob("round-*.sqlite")}


def kept_models(path: Path) -> dict[int, Path]:
    """Return the kept models by round."""
    return {_round_of(file): file for file in (path / _MODELS).glob("round-*.safetensors")}


def state_file(path: Path, number: int) -> Path:
    """Return the file of a round's state, kept for good."""
    return path / _STATES / f"round-{number:05d}.sqlite"


def checkpoint_file(path: Path, number: int) -> Path:
    """Return the file of a round's state, kept until enough later ones exist."""
    return path / _CHECKPOINTS / f"round-{number:05d}.sqlite"


def checkpoint_files(path: Path) -> list[Path]:
    """Return the files of all recent checkpoints, the oldest first."""
    return sorted((path / _CHECKPOINTS).glob("round-*.sqlite"))


def model_file(path: Path, number: int) -> Path:
    """Return the file of a round's model."""
    return path / _MODELS / f"round-{number:05d}.safetensors"


def best_file(path: Path, number: int) -> Path:
    """Return the file of the model that was best after a round."""
    return path / _MODELS / f"{_BEST}{number:05d}.state"


def best_files(path: Path) -> list[Path]:
    """Return the files of all models that were best after their round."""
    return list((path / _MODELS).glob(f"{_BEST}*.state"))


def _round_of(file: Path) -> int:
    return int(file.stem.removeprefix("round-"))
