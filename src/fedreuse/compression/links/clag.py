"""CLAG (Richtarik et al., 2022): EF21 that sends nothing while the estimate is close enough to the update.

    x = this update, y = the update before it, h = the estimate at both ends
    h <- h + C(x - h)    if |x - h|^2 > zeta |x - y|^2          sent
    h <- h               otherwise                              nothing sent; the receiver uses h
    y <- x               in either case

With the codec `dense` this is LAG, with zeta 0 EF21. The first parcel is always sent, and so is one after `max_lag` - 1
participations in a row without.
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
    """The sender's state: the estimate h, the last update y, and the participations without a parcel since the last.

    The last update is None if only a part of the group was sent.
    """

    estimate: Tensors
    previous: Tensors | None
    num_silent: int


@links.register("clag")
@dataclass(frozen=True)
class Clag(Link):
    """EF21 with lazy uploads: a parcel is sent only if the estimate's error exceeds the update's own movement.

    Args:
        zeta: Allowed squared error of the estimate relative to the squared movement, not negative; 0 allows none.
        codec: Codec of the difference; must be contractive (`top_k`, `ternary`, ...).
        max_lag: Number of participations of which at least one sends a parcel, at least 1. None: no limit.

    Raises:
        ConfigError: If a value is out of range, or the codec is not contractive.

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
        """Send nothing (None) or EF21's parcel."""
        if state is not None and self._is_silent(tensors, state, context):
            return None, Lazy(state.estimate, tensors, state.num_silent + 1)
        parcel, estimate = Ef21(self.codec).send(tensors, None if state is None else state.estimate, context)
        # without all tensors the movement |x - y| is unknown in the next round, which then sends
        return parcel, Lazy(estimate, tensors if tensors.schema == context.schema else None, 0)

    def receive(self, parcel: Parcel | None, state: Tensors | None, context: LinkContext) -> tuple[Tensors, Tensors]:
        """Return the estimate, updated if a parcel arrived."""
        return follow(parcel, state, context.schema)

    def delivered(self, parcel: Parcel | None, state: Lazy, context: LinkContext) -> Tensors:
        """Return the sender's estimate."""
        return followed(parcel, state.estimate, context.schema)

    def _is_silent(self, tensors: Tensors, state: Lazy, context: LinkContext) -> bool:
        # sending nothing keeps the estimate of every tensor, so a message about only a part of the group is always
        # sent, and so is the first full one after it
        is_forced = self.max_lag is not None and state.num_silent + 1 >= self.max_lag
        if is_forced or tensors.schema != context.schema or state.previous is None:
            return False
        return not is_worth_sending(tensors, state.estimate, state.previous, self.zeta)


def is_worth_sending(x: Tensors, h: Tensors, y: Tensors, zeta: float) -> bool:
    """Return |x - h|^2 > zeta |x - y|^2; also True for NaN, which is sent so that the receiver refuses it."""
    lacking, movement = sub(x, h), sub(x, y)
    return not dot(lacking, lacking) <= zeta * dot(movement, movement)
