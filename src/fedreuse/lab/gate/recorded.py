"""Recorded rounds of a stored run, compared bit by bit with the same rounds when they are repeated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError
from safetensors.numpy import load

from fedreuse.core.errors import RunDirectoryError, shortened
from fedreuse.runs.facts import digest_by_names, digest_of_model
from fedreuse.runs.keeping import kept_models
from fedreuse.store.provenance import provenance

if TYPE_CHECKING:
    from pathlib import Path

    from fedreuse.accounting.ledger import EventRow
    from fedreuse.core.model import Model
    from fedreuse.core.schema import ModelSchema
    from fedreuse.store.directory import RunDirectory

__all__ = ["Recorded"]

_DECIDE_BITS = ("fedreuse", "code", "packages", "cpu")
"""Keys of a provenance that must be equal for bit-identical results."""


class Recorded:
    """Rounds of a stored run: all events, and the digests of kept models and of the result."""

    def __init__(self, run: RunDirectory, schema: ModelSchema) -> None:
        """Read events and digests; an unfinished run has its rounds so far."""
        self._run = run
        self._events: dict[int, list[EventRow]] = defaultdict(list)
        for event in run.events():
            self._events[event.round_number].append(event)
        self._models = {number: _digest(path, schema) for number, path in kept_models(run.path).items()}
        if run.is_complete and "model_digest" in run.summary:  # older runs do not tell it
            self._models[run.summary.get("model_round", self.rounds)] = run.summary["model_digest"]

    @property
    def rounds(self) -> int:
        """Number of rounds of the run."""
        return max(self._events, default=0)

    def compare(self, number: int, events: Iterable[EventRow], model: Model) -> None:
        """Compare the decisions and the model of a repeated round with those of the stored run.

        Raises:
            RunDirectoryError: They differ; the message has the difference and possible causes on this machine.
        """
        if number > self.rounds:
            return
        ours, theirs = (
            {row.client: (row.outcome, row.reason, row.age, row.score) for row in rows}
            for rows in (events, self._events[number])
        )
        if ours != theirs:
            client = min(client for client in ours | theirs if ours.get(client) != theirs.get(client))
            difference = f"client {client} {_decision(theirs.get(client))} there and {_decision(ours.get(client))} here"
            raise self._mismatch(number, difference)
        known, found = self._models.get(number), digest_of_model(model)
        if known is not None and known != found:
            raise self._mismatch(number, f"its model is {known[:12]} there and {found[:12]} here")

    def _mismatch(self, number: int, difference: str) -> RunDirectoryError:
        known, here = self._run.provenance, provenance()
        differing = [key for key in _DECIDE_BITS if known.get(key) != here[key]]
        why = "; ".join(f"{key} was {_short(known.get(key), here[key])}" for key in differing)
        return RunDirectoryError(
            f"{self._run.path}: the repeated round {number} differs from the stored run: {difference}. Bit-identical "
            f"results need the same CPU type, code and packages ({why or 'no difference is known here'}); repeat it on "
            f"the machine of the run, or give {self._run.path / 'config.yaml'} instead, for a new run"
        )


def _digest(path: Path, schema: ModelSchema) -> str:
    try:
        return digest_by_names(load(path.read_bytes()), schema)
    except (OSError, ValueError, SafetensorError) as error:
        raise RunDirectoryError(
            f"{path} cannot be read ({shortened(str(error))}); restore it from a copy, or delete it to skip the "
            "comparison"
        ) from None


def _decision(decided: tuple[Any, ...] | None) -> str:
    if decided is None:
        return "was not selected"
    outcome, reason, _, score = decided
    return (
        f"was {outcome}" + (f" ({reason})" if reason else "") + (f" with score {score!r}" if score is not None else "")
    )


def _short(then: Any, now: Any) -> str:
    """Return two values, or the differing entries of two mappings."""
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        keys = [key for key in now if then.get(key) != now[key]]
        return ", ".join(f"{key} {_cut(then.get(key))} and is {_cut(now[key])}" for key in keys) or "another"
    return f"{_cut(then)} and is {_cut(now)}"


def _cut(part: Any) -> str:
    return shortened(str(part))
