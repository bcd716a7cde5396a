"""One compressed broadcast per round for all receivers; a receiver that missed some gets them together.

e_t+1 = e_t + decoded(b_t)     b_t = C(x_t - e_t)         once per round, for all receivers; e_1 is the initial model
to a receiver that holds e_s                              b_s, ..., b_t in one parcel, after which it holds e_t+1
to one whose b_s the sender no longer keeps               e_t+1 itself, dense

The sender keeps e and the encoded form of its last broadcasts, as many as are together shorter than e; so the missed
broadcasts, if still kept, are always the shorter message. Per receiver it only keeps the number s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.compression.codecs.codec import Codec, codecs, require_contraction
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.links.delta import HELD, Delta
from fedreuse.compression.links.link import links
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.limits import MAX_PARCELS
from fedreuse.core.errors import WireError, require
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.registry import part
from fedreuse.core.schema import ModelSchema, Schema
from fedreuse.core.tensors import Tensors
from fedreuse.core.values import value

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel

__all__ = ["Broadcast", "Shared"]


@value
class Shared:
    """The sender's shared state: the common estimate, the number of broadcasts so far, and the last ones, encoded."""

    estimate: Tensors
    number: int = 0
    past: tuple[np.ndarray, ...] = ()


@links.register("broadcast")
@dataclass(frozen=True)
class Broadcast(Link):
    """A downlink that sends the same compressed differences to all receivers, one per round.

    Args:
        codec: Codec of the difference between the model and the common estimate; must be contractive.
        last: Largest number of broadcasts the sender keeps, from 1 to 1024; fewer if together they are longer than the
            estimate itself.

    Raises:
        ConfigError: If `last` is out of range, or the codec is not contractive.

    Example: `downlink: {model: {name: broadcast, codec: {name: packed, codec: {name: top_k, ratio: 0.01}}}}`.
    """

    has_memory: ClassVar[bool] = True
    sends_shared: ClassVar[bool] = True

    codec: Codec = part(codecs, "nonzero")
    last: int = MAX_PARCELS

    def __post_init__(self) -> None:
        """Check the range and that the codec is contractive."""
        require_contraction(self.codec, "broadcast")
        require(1 <= self.last <= MAX_PARCELS, f"broadcast.last must be from 1 to {MAX_PARCELS}", self.last)

    @property
    def _delta(self) -> Delta:
        """The link that encodes a broadcast and adds it to the estimate."""
        return Delta(self.codec, start="initial")

    def share(self, tensors: Tensors, shared: Shared | None, context: LinkContext) -> Shared:
        """Return the shared state after one more broadcast; unchanged if the tensors equal the estimate."""
        held = context.initial if shared is None else shared.estimate
        parcel, after = self._delta.send(tensors, held, context)
        if held is not None and after is held:  # no change: no broadcast, and the number stays
            return Shared(held) if shared is None else shared
        number, past = (1, ()) if shared is None else (shared.number + 1, shared.past)
        if HELD not in parcel.notes:  # the first model, or one with another schema, which no receiver holds
            return Shared(after, number)
        kept = (*past, _as_array(parcel))[-self.last :]
        # drop the oldest broadcasts while all together are longer than the estimate itself
        while len(kept) > 1 and sum(map(len, kept)) - len(kept) * _OVERHEAD > context.schema.dense_bytes:
            kept = kept[1:]
        return Shared(after, number, kept)

    def send(self, tensors: Tensors, state: int | None, context: LinkContext) -> tuple[Parcel, int]:
        """Send the broadcasts since number `state`; a new receiver (None) holds the initial model, if there is one."""
        del tensors
        shared: Shared = context.shared
        since = 0 if state is None and context.initial is not None else state
        if since is None or shared.number - since > len(shared.past):  # holds nothing, or misses dropped broadcasts
            return Dense().encode(shared.estimate, context.schema, context.rng), shared.number
        if since == shared.number:  # misses nothing: an empty difference
            return self._delta.send(shared.estimate, shared.estimate, context)[0], shared.number
        first, *rest = (_as_parcel(array, context.schema) for array in shared.past[since - shared.number :])
        return replace(first, more=tuple(rest)), shared.number

    def receive(self, parcel: Parcel | None, state: Tensors | None, context: LinkContext) -> tuple[Tensors, Tensors]:
        """Add one broadcast after the other; each names the estimate it builds on."""
        if parcel is None:
            raise WireError("a broadcast link always sends a parcel")
        arrived, held = self._delta.receive(parcel, state, context)
        for further in parcel.more:
            arrived, held = self._delta.receive(further, held, context)
        return arrived, held

    def held(self, state: Shared | None, context: LinkContext) -> Tensors | None:
        """Return the common estimate."""
        return context.initial if state is None else state.estimate

    def delivered(self, parcel: Parcel | None, state: int, context: LinkContext) -> Tensors:
        """Return the common estimate."""
        del parcel, state
        estimate: Tensors = context.shared.estimate
        return estimate


def _as_array(parcel: Parcel | None) -> np.ndarray:
    """Encode a parcel for storage, as a message that contains nothing else."""
    return np.frombuffer(Envelope("", 0, 0, parcels={"": parcel}).to_bytes(), np.uint8)


_OVERHEAD = len(_as_array(None)) - 1
"""Bytes of such a message in addition to the parcel."""


def _as_parcel(array: np.ndarray, schema: Schema) -> Parcel:
    """Decode a stored parcel."""
    parcel = Envelope.from_bytes(array.tobytes(), ModelSchema(schema)).parcels[""]
    assert parcel is not None
    return parcel
