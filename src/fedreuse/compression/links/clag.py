"""CLAG (Richtarik et al., 2022): EF21 that stays silent while the estimate is no worse than the update's own movement.

    x = this update, y = the update before it, h = the estimate at both ends
    h <- h + C(x - h)    if |x - h|^2 > zeta |x - y|^2          sent
    h <- h               otherwise                              silence; h arrives all the same
    y <- x               in either case

Settings: the codec `dense` is LAG, zeta 0 is EF21. The first parcel is always sent, and so is the one that would be
the `max_lag`-th in a row without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.compression.codecs.codec import Codec, codecs, require_contraction
from fedreuse.compression.links.ef21 import Ef21
from fedreuse.compression.links.estimates import follow, followed
from fedreuse.compression.links.link import links
from fedreuse.core.errors import require
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.registry import part
from fedreuse.core.tensors import Tensors, dot, sub
from fedreuse.core.values import value

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel

__all__ = ["Clag", "Lazy", "is_worth_sending"]


@value
class Lazy:
    """The sender's end: the estimate h, the last update y, and how often it was silent since it last sent.

    The last update is None when only a part of the group was sent.
    """

    estimate: Tensors
    previous: Tensors | None
    num_silent: int


@links.register("clag")
@dataclass(frozen=True)
class Clag(Link):
    """Send as EF21 does, but only when the estimate is off by more than zeta times the update's own movement.

    Args:
        zeta: How much the estimate may be off before anything is sent, not negative; 0 sends whenever it is.
        codec: What is sent of the difference; it must contract (`top_k`, `ternary`, ...).
        max_lag: Send at least in every so many participations, at least 1; the number of rounds means never.

    Example: `uplink: {update: {name: clag, zeta: 4, codec: {name: top_k, ratio: 0.1}}}`.
    """

    has_memory: ClassVar[bool] = True

    zeta: float = 1.0
    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    max_lag: int | None = 10

    def __post_init__(self) -> None:
        """Check the ranges."""
        require_contraction(self.codec, "clag")
        require(self.zeta >= 0, "clag.zeta must not be negative", self.zeta)
        require(self.max_lag is None or self.max_lag >= 1, "clag.max_lag must be at least 1 (or null)", self.max_lag)

    def send(self, tensors: Tensors, state: Lazy | None, context: LinkContext) -> tuple[Parcel | None, Lazy]:
        """Silence, or what EF21 sends."""
        if state is not None and self._is_silent(tensors, state, context):
            return None, Lazy(state.estimate, tensors, state.num_silent + 1)
        parcel, estimate = Ef21(self.codec).send(tensors, None if state is None else state.estimate, context)
        return parcel, Lazy(estimate, tensors if tensors.schema == context.schema else None, 0)

    def receive(self, parcel: Parcel | None, state: Tensors | None, context: LinkContext) -> tuple[Tensors, Tensors]:
        """The estimate, moved if something came."""
        return follow(parcel, state, context.schema)

    def delivered(self, parcel: Parcel | None, state: Lazy, context: LinkContext) -> Tensors:
        """The sender's own estimate."""
        return followed(parcel, state.estimate, context.schema)

    def _is_silent(self, tensors: Tensors, state: Lazy, context: LinkContext) -> bool:
        # silence speaks for every tensor of the group: a part is always sent, and the whole after a part
        is_forced = self.max_lag is not None and state.num_silent + 1 >= self.max_lag
        if is_forced or tensors.schema != context.schema or state.previous is None:
            return False
        return not is_worth_sending(tensors, state.estimate, state.previous, self.zeta)


def is_worth_sending(x: Tensors, h: Tensors, y: Tensors, zeta: float) -> bool:
    """|x - h|^2 > zeta |x - y|^2, strictly; what is not a number is sent, so that the receiver sees and refuses it."""
    lacking, movement = sub(x, h), sub(x, y)
    return not dot(lacking, lacking) <= zeta * dot(movement, movement)
