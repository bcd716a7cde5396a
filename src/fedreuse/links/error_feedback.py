"""Fed-EF: what a lossy codec drops is remembered and added to the next update.

c_t   = C(delta_t + e_t)                    sent
e_t+1 = delta_t + e_t - decoded(c_t)        waits at the client until it takes part again
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.codecs.codec import Codec, codecs, require_contraction
from fedreuse.core.errors import WireError, require
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.registry import part
from fedreuse.core.tensors import Tensors, add, scale, sub
from fedreuse.links.estimates import part_of, with_part
from fedreuse.links.link import links

if TYPE_CHECKING:
    from fedreuse.wire.parcel import Parcel

__all__ = ["ErrorFeedback"]


@links.register("error_feedback")
@dataclass(frozen=True)
class ErrorFeedback(Link):
    """Remember what the codec drops and add it to the next update; `decay` 1 is Fed-EF, less forgets.

    Args:
        codec: What is sent; anything that drops or rounds (`top_k`, `narrow`, `ternary`, ...), as long as it
            contracts.
        decay: Share of the residual that is kept at each participation, in (0, 1].

    Example: `uplink: {update: {name: error_feedback, codec: {name: top_k, ratio: 0.1}}}`.
    """

    has_memory: ClassVar[bool] = True

    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    decay: float = 1.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require_contraction(self.codec, "error_feedback")
        require(0 < self.decay <= 1, "error_feedback.decay must be in (0, 1]", self.decay)

    @property
    def drops_coordinates(self) -> bool:
        """As the codec."""
        return self.codec.drops_coordinates

    def send(self, tensors: Tensors, state: Tensors | None, context: LinkContext) -> tuple[Parcel, Tensors]:
        """Send the codec's view of update plus residual; keep the rest. What is absent waits."""
        wanted = tensors if state is None else add(tensors, self._faded(part_of(state, tensors.schema)))
        parcel = self.codec.encode(wanted, context.schema, context.rng)
        left = sub(wanted, part_of(parcel.decode(context.schema), wanted.schema))
        return parcel, with_part(state, left, context.schema)

    def receive(self, parcel: Parcel | None, state: None, context: LinkContext) -> tuple[Tensors, None]:
        """Decode; the receiver has no memory."""
        del state
        if parcel is None:
            raise WireError("error feedback is never silent")
        return parcel.decode(context.schema), None

    def delivered(self, parcel: Parcel | None, state: Tensors, context: LinkContext) -> Tensors:
        """The decoded parcel."""
        del state
        return self.receive(parcel, None, context)[0]

    def _faded(self, residual: Tensors) -> Tensors:
        return residual if self.decay == 1 else scale(residual, self.decay)
