"""What a run keeps beside its last state: the best model, models and states of chosen rounds, earlier checkpoints."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import save

from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.files import write_whole
from fedreuse.engine.state.state_file import map_state, write_state
from fedreuse.robustness.privacy import SECRET_FILE
from fedreuse.runs.summary import arrays_of
from fedreuse.store.directory import JOURNAL, RunDirectory
from fedreuse.store.journal import Journal
from fedreuse.store.manifest import MANIFEST
from fedreuse.store.openings import RECORD_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from fedreuse.core.model import Model
    from fedreuse.runs.live import LiveRun

__all__ = ["Keeper", "go_back", "kept_models", "kept_states"]

_MODELS, _STATES, _CHECKPOINTS = "models", "states", "checkpoints"
_BEST = "best-"
_LATER = ("COMPLETE", "STOPPED", "summary.json", MANIFEST, "metrics.jsonl", f"{JOURNAL}-wal", f"{JOURNAL}-shm")
"""What tells of rounds after the one that a run goes back to."""


class Keeper:
    """Stores what a live run keeps; what is written again after a crash has the same bits."""

    def __init__(self, live: LiveRun) -> None:
        """Nothing is written yet."""
        self._live, self._keep, self._path = live, live.federation.config.keep, live.directory.path

    def after_round(self, number: int, is_best: bool) -> None:
        """Store the model if it is to be kept; before the round's checkpoint, which may then count on it."""
        if self._keep.model == "best" and is_best:
            state = write_state(self._live.model, self._live.federation.schema)
            _write(self._path / _MODELS / f"{_BEST}{number:05d}.state", state)
        if number in self._keep.models:
            arrays = {name: np.asarray(array, order="C") for name, array in arrays_of(self._live.model).items()}
            _write(self._path / _MODELS / f"round-{number:05d}.safetensors", save(arrays))

    def after_checkpoint(self, number: int, best_round: int) -> None:
        """Copy the state if it is to be kept, and drop what no longer is."""
        if number in self._keep.states:
            self._live.directory.journal.copy(_state_of(self._path, _STATES, number))
        if self._keep.checkpoints:
            self._live.directory.journal.copy(_state_of(self._path, _CHECKPOINTS, number))
            for old in sorted((self._path / _CHECKPOINTS).glob("round-*.sqlite"))[: -self._keep.checkpoints]:
                old.unlink()
        for old in (self._path / _MODELS).glob(f"{_BEST}*.state"):
            # a copy that somebody may go back to still needs the model that was best then
            if old != self._best_file(best_round) and not self._keep.has_copies:
                old.unlink()

    def result(self, best_round: int) -> Model:
        """The model that the run is about."""
        if self._keep.model == "last":
            return self._live.model
        path = self._best_file(best_round)
        if not path.exists():
            raise RunDirectoryError(f"{path} is gone, which holds the best model; bring it back, or run it again")
        model: Model = map_state(path, self._live.federation.schema)
        return model

    def _best_file(self, number: int) -> Path:
        return self._path / _MODELS / f"{_BEST}{number:05d}.state"


def go_back(run: str | Path, number: int) -> RunDirectory:
    """Make a kept state the last one of a run that was not tested; what came later is gone.

    Args:
        run: The run directory.
        number: A round whose state was kept (`keep.checkpoints`, `keep.states`).

    Returns:
        The run directory, unfinished; `run(config, ..., resume=True)` goes on with it.

    Raises:
        RunDirectoryError: No such state was kept, the test split was opened, the clients' memories lie elsewhere, or
            noise that hides real clients would be used twice.

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
    place = directory.path
    if (place / RECORD_FILE).exists():
        raise RunDirectoryError(
            f"{place}: its test split was opened, so that going back would be choosing by test; start a new run"
        )
    if (place / SECRET_FILE).exists():
        raise RunDirectoryError(
            f"{place}: its noise is drawn from {SECRET_FILE} by round. Rounds that are played again with other replies "
            "would get the same noise, and the difference of the two models would have none; start a new run, which "
            "has a secret of its own"
        )
    if (place / "deployment.json").exists():
        raise RunDirectoryError(f"{place} ran on real nodes, whose memories do not go back with it; start a new run")
    kept = kept_states(place)
    if number not in kept:
        known = f"rounds {', '.join(map(str, sorted(kept)))} are there" if kept else "none was (keep.checkpoints: 3)"
        raise RunDirectoryError(f"{place}: the state of round {number} was not kept; {known}")
    with closing(Journal(kept[number])) as copy:
        copy.verify()
    directory.lock()
    try:
        for name in _LATER:
            (place / name).unlink(missing_ok=True)
        write_whole(place / JOURNAL, kept[number].read_bytes())
        for later in (file for round_number, file in kept.items() if round_number > number):
            later.unlink(missing_ok=True)
        directory.log(f"went back to round {number}")
    finally:
        directory.release()
    return directory


def kept_states(place: Path) -> dict[int, Path]:
    """By round, the copies of the journal that a run directory keeps: everything as it was after that round."""
    return {_round_of(file): file for name in (_CHECKPOINTS, _STATES) for file in (place / name).glob("round-*.sqlite")}


def kept_models(place: Path) -> dict[int, Path]:
    """By round, the models that a run directory keeps: the server's after that round."""
    return {_round_of(file): file for file in (place / _MODELS).glob("round-*.safetensors")}


def _round_of(file: Path) -> int:
    return int(file.stem.removeprefix("round-"))


def _state_of(place: Path, name: str, number: int) -> Path:
    return place / name / f"round-{number:05d}.sqlite"


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    write_whole(path, data)
