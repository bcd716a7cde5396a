"""What a run directory recorded of its rounds, for whoever plays them again: the same bits, or a refusal."""

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
"""What of a provenance must be equal for equal bits."""


class Recorded:
    """The rounds of a stored run: events of all of them, models of those that were kept and of the result."""

    def __init__(self, run: RunDirectory, schema: ModelSchema) -> None:
        """Read what there is; an unfinished run has its rounds up to now."""
        self._run = run
        self._events: dict[int, list[EventRow]] = defaultdict(list)
        for event in run.events():
            self._events[event.round_number].append(event)
        self._models = {number: _digest(path, schema) for number, path in kept_models(run.path).items()}
        if run.is_complete and "model_digest" in run.summary:  # older runs do not tell it
            self._models[run.summary.get("model_round", self.rounds)] = run.summary["model_digest"]

    @property
    def rounds(self) -> int:
        """How many rounds the run has."""
        return max(self._events, default=0)

    def compare(self, number: int, events: Iterable[EventRow], model: Model) -> None:
        """Refuse a round that, played again, decided otherwise or ended in another model than the stored run.

        Raises:
            RunDirectoryError: With what differs, and why the bits of this machine may be others.
        """
        if number > self.rounds:
            return
        ours, theirs = (
            {row.client: (row.outcome, row.reason, row.age, row.score) for row in rows}
            for rows in (events, self._events[number])
        )
        if ours != theirs:
            client = min(client for client in ours | theirs if ours.get(client) != theirs.get(client))
            told = f"client {client} {_decision(theirs.get(client))} there and {_decision(ours.get(client))} here"
            raise self._another(number, told)
        known, found = self._models.get(number), digest_of_model(model)
        if known is not None and known != found:
            raise self._another(number, f"its model is {known[:12]} there and {found[:12]} here")

    def _another(self, number: int, told: str) -> RunDirectoryError:
        known, here = self._run.provenance, provenance()
        differing = [key for key in _DECIDE_BITS if known.get(key) != here[key]]
        why = "; ".join(f"{key} was {_short(known.get(key), here[key])}" for key in differing)
        return RunDirectoryError(
            f"{self._run.path}: round {number}, played again, is not that of the stored run: {told}. The same bits "
            f"need the same type of CPU, code and packages ({why or 'all of which seem to be the same here'}); play it "
            f"where it was made, or name {self._run.path / 'config.yaml'}, which is then a run of its own"
        )


def _digest(path: Path, schema: ModelSchema) -> str:
    try:
        return digest_by_names(load(path.read_bytes()), schema)
    except (OSError, ValueError, SafetensorError) as error:
        raise RunDirectoryError(
            f"{path} cannot be read ({shortened(str(error))}); bring it back from a copy, or delete it: then nothing "
            "is compared with it"
        ) from None


def _decision(decided: tuple[Any, ...] | None) -> str:
    if decided is None:
        return "was not selected"
    outcome, reason, _, score = decided
    return (
        f"was {outcome}" + (f" ({reason})" if reason else "") + (f" with score {score!r}" if score is not None else "")
    )


def _short(then: Any, now: Any) -> str:
    """Two values, or of two mappings what differs."""
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        keys = [key for key in now if then.get(key) != now[key]]
        return ", ".join(f"{key} {_cut(then.get(key))} and is {_cut(now[key])}" for key in keys) or "another"
    return f"{_cut(then)} and is {_cut(now)}"


def _cut(part: Any) -> str:
    return shortened(str(part))
