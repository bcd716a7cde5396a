"""LAQ (Sun et al., 2019): quantised differences to an estimate, sent only if they are large enough.

    Q'   = Q + quantised(x - Q)                     nearest of 2^b levels between -R and R = max |x - Q|, per tensor
    e    = x - Q'
    skip  iff  |Q' - Q|^2 <= movement + 3 (|e|^2 + |e_old|^2)         e_old: the error when Q was sent
    sent: R and the levels; Q <- Q', e_old <- e                       skipped: nothing; the receiver uses Q

`movement`, the weighted sum of the model's last squared steps, is a value of the request (see methods/movement.py), or
0 without it. The first parcel is always sent, and so is one after `max_lag` - 1 participations in a row without.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from fedreuse.compression.links.estimates import follow, followed, moved, part_of
from fedreuse.compression.links.link import links
from fedreuse.compression.wire.modes.innovation import MAX_BITS, innovation_block
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.errors import require
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.tensors import Tensors, dot, sub
from fedreuse.core.values import value

__all__ = ["Laq", "Quantised"]


@value
class Quantised:
    """The sender's state: the estimate Q, its squared error when sent, and the participations without a parcel since.

    The error is None if only a part of the group was sent.
    """

    estimate: Tensors
    error: float | None
    num_silent: int


@links.register("laq")
@dataclass(frozen=True)
class Laq(Link):
    """Lazily aggregated quantization: differences of a few bits, sent only if they are large.

    A difference is compared with the model's recent movement, which the method must send, and the quantisation errors.

    Args:
        bits: Bits per coordinate, from 1 to 32.
        max_lag: Number of participations of which at least one sends a parcel, at least 1. None: no limit.

    Raises:
        ConfigError: If a value is out of range.

    Example: `method: {name: laq, bits: 4}`.
    """

    has_memory: ClassVar[bool] = True

    bits: int = 4
    max_lag: int | None = 100

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(1 <= self.bits <= MAX_BITS, f"laq.bits must be in 1 .. {MAX_BITS}", self.bits)
        require(self.max_lag is None or self.max_lag >= 1, "laq.max_lag must be at least 1 (or null)", self.max_lag)

    def send(self, tensors: Tensors, state: Quantised | None, context: LinkContext) -> tuple[Parcel | None, Quantised]:
        """Quantise the difference; send it if it is large enough, else nothing (None)."""
        held = None if state is None else state.estimate
        wanted = sub(tensors, part_of(held, tensors.schema))
        # quantised before the decision, because the condition compares the quantised difference and its error
        parcel = self._quantise(wanted, context)
        change = parcel.decode(context.schema)
        innovation = part_of(change, tensors.schema)
        missed = sub(wanted, innovation)
        error = dot(missed, missed)
        is_whole = tensors.schema == context.schema
        if state is not None and is_whole and self._is_silent(dot(innovation, innovation), error, state, context):
            return None, replace(state, num_silent=state.num_silent + 1)
        return parcel, Quantised(moved(change, held, context.schema)[1], error if is_whole else None, 0)

    def receive(self, parcel: Parcel | None, state: Tensors | None, context: LinkContext) -> tuple[Tensors, Tensors]:
        """Return the estimate, updated if a parcel arrived."""
        return follow(parcel, state, context.schema)

    def delivered(self, parcel: Parcel | None, state: Quantised, context: LinkContext) -> Tensors:
        """Return the sender's estimate."""
        return followed(parcel, state.estimate, context.schema)

    def _quantise(self, innovation: Tensors, context: LinkContext) -> Parcel:
        return pack_tensors(innovation, context.schema, partial(innovation_block, bits=self.bits), {"bits": self.bits})

    def _is_silent(self, change: float, error: float, state: Quantised, context: LinkContext) -> bool:
        is_forced = self.max_lag is not None and state.num_silent + 1 >= self.max_lag
        # sending nothing keeps the estimate of every tensor, so the last parcel must have contained them all
        if is_forced or state.error is None:
            return False
        return change <= float(context.values.get("movement", 0.0)) + 3 * (error + state.error)
