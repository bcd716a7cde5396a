"""EControl (Gao, Islamov, Stich, 2024): EF21 with a share of the accumulated error added to every difference.

q_t     = C(delta_t - h_t + eta e_t)                sent
e_{t+1} = e_t + delta_t - h_t - decoded(q_t)        at the sender                                         e_0 = 0
h_{t+1} = h_t + decoded(q_t)                        at both ends, delivered                               h_0 = 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.compression.codecs.codec import Codec, codecs, require_contraction
from fedreuse.compression.links.estimates import follow, followed, part_of, with_part
from fedreuse.compression.links.link import links
from fedreuse.core.errors import WireError, require
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.registry import part
from fedreuse.core.tensors import Tensors, add, scale, sub
from fedreuse.core.values import value

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel

__all__ = ["Controlled", "EControl"]


@value
class Controlled:
    """The sender's state: the estimate h and the accumulated error e."""

    estimate: Tensors
    error: Tensors


@links.register("econtrol")
@dataclass(frozen=True)
class EControl(Link):
    """EControl: EF21 with a share of the accumulated error added to every difference.

    Args:
        codec: Codec of the difference; must be contractive (`top_k`, `ternary`, ...).
        eta: Share of the accumulated error, in [0, 1]; 0 is bit-identical to `ef21`.

    Raises:
        ConfigError: If `eta` is out of range, or the codec is not contractive.

    Example: `uplink: {update: {name: econtrol, codec: {name: top_k, ratio: 0.1}, eta: 0.1}}`.
    """

    has_memory: ClassVar[bool] = True

    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    eta: float = 0.1

    def __post_init__(self) -> None:
        """Check the range and that the codec is contractive: its errors are fed back."""
        require_contraction(self.codec, "econtrol")
        require(0 <= self.eta <= 1, "econtrol.eta must be in [0, 1]", self.eta)

    def send(self, tensors: Tensors, state: Controlled | None, context: LinkContext) -> tuple[Parcel, Controlled]:
        """Send the difference plus a share of the error; update estimate and error by the decoded parcel."""
        estimate, error = (None, None) if state is None else (state.estimate, state.error)
        difference = sub(tensors, part_of(estimate, tensors.schema))
        before = part_of(error, tensors.schema)
        wanted = add(difference, scale(before, self.eta)) if self.eta else difference  # eta 0: the bits of EF21
        parcel = self.codec.encode(wanted, context.schema, context.rng)
        left = sub(add(before, difference), part_of(parcel.decode(context.schema), tensors.schema))
        after = follow(parcel, estimate, context.schema)[1]
        return parcel, Controlled(after, with_part(error, left, context.schema))

    def receive(self, parcel: Parcel | None, state: Tensors | None, context: LinkContext) -> tuple[Tensors, Tensors]:
        """Update the receiver's estimate in the same way and return it."""
        if parcel is None:
            raise WireError("econtrol always sends a parcel")
        return follow(parcel, state, context.schema)

    def delivered(self, parcel: Parcel | None, state: Controlled, context: LinkContext) -> Tensors:
        """Return the sender's estimate of the tensors that were sent."""
        return followed(parcel, state.estimate, context.schema)
