"""EControl (Gao, Islamov, Stich, 2024): EF21's estimate, and with it a share of all that it has lacked so far.

q_t     = C(delta_t - h_t + eta e_t)                sent
e_{t+1} = e_t + delta_t - h_t - decoded(q_t)        at the sender                                         e_0 = 0
h_{t+1} = h_t + decoded(q_t)                        at both ends; this is what arrives                    h_0 = 0
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
    """The sender's end: the estimate h, and the sum e of what it lacked."""

    estimate: Tensors
    error: Tensors


@links.register("econtrol")
@dataclass(frozen=True)
class EControl(Link):
    """Keep the same estimate at both ends, and add a share of the accumulated error to every difference that is sent.

    Args:
        codec: What is sent of the difference; it must contract (`top_k`, `ternary`, ...).
        eta: Share of the accumulated error, in [0, 1]; 0 is `ef21`, bit for bit.

    Example: `uplink: {update: {name: econtrol, codec: {name: top_k, ratio: 0.1}, eta: 0.1}}`.
    """

    has_memory: ClassVar[bool] = True

    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    eta: float = 0.1

    def __post_init__(self) -> None:
        """Check the range; refuse a codec whose errors grow, because they come back."""
        require_contraction(self.codec, "econtrol")
        require(0 <= self.eta <= 1, "econtrol.eta must be in [0, 1]", self.eta)

    def send(self, tensors: Tensors, state: Controlled | None, context: LinkContext) -> tuple[Parcel, Controlled]:
        """Send the difference to the estimate with a share of the error; move both by what will be decoded."""
        estimate, error = (None, None) if state is None else (state.estimate, state.error)
        lacking = sub(tensors, part_of(estimate, tensors.schema))
        before = part_of(error, tensors.schema)
        wanted = add(lacking, scale(before, self.eta)) if self.eta else lacking
        parcel = self.codec.encode(wanted, context.schema, context.rng)
        left = sub(add(before, lacking), part_of(parcel.decode(context.schema), tensors.schema))
        after = follow(parcel, estimate, context.schema)[1]
        return parcel, Controlled(after, with_part(error, left, context.schema))

    def receive(self, parcel: Parcel | None, state: Tensors | None, context: LinkContext) -> tuple[Tensors, Tensors]:
        """Move the estimate in the same way; it is what arrives."""
        if parcel is None:
            raise WireError("econtrol is never silent")
        return follow(parcel, state, context.schema)

    def delivered(self, parcel: Parcel | None, state: Controlled, context: LinkContext) -> Tensors:
        """The sender's own estimate of the tensors that were sent."""
        return followed(parcel, state.estimate, context.schema)
