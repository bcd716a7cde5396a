"""Three point compressors (3PC; Richtarik et al., 2022), variants 2 to 5: an estimate h of x, updated via a base b.

    x = this update, y = the update before it, h = the estimate at both ends; h = y = 0 at first
    v2    b = h + Q(x - y)                                              h <- b + C(x - b)
    v3    b = h + Q(x - h) if |x - h|^2 > zeta |x - y|^2, else h        h <- b + C(x - b)
    v4    b = h + Q(x - h)                                              h <- b + C(x - b)
    v5    h <- x with probability p, else h + C(x - y)

Every message is a change of h: Q's parcel after C's (`Parcel.more`), or in v5 either x - h in full or C(x - y), chosen
at random by the client. So the server only adds, and needs neither y nor the random choice. v1, y + C(x - y), would
need y at the server, which is a dense upload.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from fedreuse.compression.codecs.codec import Codec, codecs, require_contraction
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.links.clag import is_worth_sending
from fedreuse.compression.links.estimates import follow, followed, part_of, with_part
from fedreuse.compression.links.link import links
from fedreuse.core.errors import ConfigError, WireError, require
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.registry import part
from fedreuse.core.tensors import Tensors, sub
from fedreuse.core.values import value

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.schema import Schema

__all__ = ["ThreePc", "TwoPoints"]


@value
class TwoPoints:
    """The sender's state: the estimate h and the last update y."""

    estimate: Tensors
    previous: Tensors


@links.register("three_pc")
@dataclass(frozen=True)
class ThreePc(Link):
    """Three point compressor (variants 2 to 5): the same estimate at both ends, updated by compressed differences.

    Args:
        variant: `v2`, `v3`, `v4` or `v5`.
        codec: C of every variant; must be contractive.
        base: Q of `v2` (unbiased in the paper), `v3` and `v4`.
        zeta: Allowed squared error of the estimate relative to the squared movement in `v3`, not negative; above it Q
            is sent, too.
        probability: Probability of sending x - h in full in `v5`, in (0, 1].

    Raises:
        ConfigError: If the variant is `v1`, a value is out of range, or the codec is not contractive.

    Example: `uplink: {update: {name: three_pc, variant: v4}}`.
    """

    has_memory: ClassVar[bool] = True

    variant: Literal["v1", "v2", "v3", "v4", "v5"] = "v4"
    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.1})
    base: Codec = part(codecs, {"name": "top_k", "ratio": 0.1})
    zeta: float = 1.0
    probability: float = 0.1

    def __post_init__(self) -> None:
        """Check the variant, the ranges and that the codec is contractive."""
        if self.variant == "v1":
            raise ConfigError(
                "three_pc.variant: v1 needs the client's last update in full at the server, which costs a dense upload "
                "in every round; choose v2, v3, v4 or v5"
            )
        require_contraction(self.codec, "three_pc")
        require(self.zeta >= 0, "three_pc.zeta must not be negative", self.zeta)
        require(0 < self.probability <= 1, "three_pc.probability must be in (0, 1]", self.probability)

    def send(self, tensors: Tensors, state: TwoPoints | None, context: LinkContext) -> tuple[Parcel, TwoPoints]:
        """Send one or two parcels in one, and update the estimate by them."""
        held, previous = (None, None) if state is None else (state.estimate, state.previous)
        first = self._base(tensors, state, context)
        base = held if first is None else follow(first, held, context.schema)[1]  # as the receiver will apply it
        parcel = replace(self._rest(tensors, base, previous, context), more=() if first is None else (first,))
        return parcel, TwoPoints(_follow(parcel, held, context.schema)[1], with_part(previous, tensors, context.schema))

    def receive(self, parcel: Parcel | None, state: Tensors | None, context: LinkContext) -> tuple[Tensors, Tensors]:
        """Update the receiver's estimate in the same way and return it."""
        if parcel is None:
            raise WireError("three_pc always sends a parcel")
        return _follow(parcel, state, context.schema)

    def delivered(self, parcel: Parcel | None, state: TwoPoints, context: LinkContext) -> Tensors:
        """Return the sender's estimate of the tensors that were sent."""
        return followed(parcel, state.estimate, context.schema)

    def _base(self, x: Tensors, state: TwoPoints | None, context: LinkContext) -> Parcel | None:
        """Return Q's parcel, or None if the variant or its condition sends none."""
        h = part_of(None if state is None else state.estimate, x.schema)
        y = part_of(None if state is None else state.previous, x.schema)
        is_lazy = self.variant == "v3" and state is not None and not is_worth_sending(x, h, y, self.zeta)
        if self.variant == "v5" or is_lazy:
            return None
        return self.base.encode(sub(x, y if self.variant == "v2" else h), context.schema, context.rng)

    def _rest(self, x: Tensors, b: Tensors | None, y: Tensors | None, context: LinkContext) -> Parcel:
        """Return C's parcel of x - b; in v5 that of x - y or, at random, x - h in full."""
        is_full = self.variant == "v5" and context.rng.random() < self.probability
        point = y if self.variant == "v5" and not is_full else b
        codec = Dense() if is_full else self.codec
        return codec.encode(sub(x, part_of(point, x.schema)), context.schema, context.rng)


def _follow(parcel: Parcel, held: Tensors | None, whole: Schema) -> tuple[Tensors, Tensors]:
    """Return the delivered tensors and the new estimate; both ends call this."""
    base = follow(parcel.more[0], held, whole)[1] if parcel.more else held
    return follow(parcel, base, whole)
