"""EF21 (Richtarik et al., 2021): both ends keep an estimate of the update and move it by a compressed difference.

q_t     = C(delta_t - g_t)                  sent
g_{t+1} = g_t + decoded(q_t)                at both ends; this is what arrives                 g_0 = 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.compression.codecs.codec import Codec, codecs, require_contraction
from fedreuse.compression.links.estimates import follow, followed, part_of
from fedreuse.compression.links.link import links
from fedreuse.core.errors import WireError
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.registry import part
from fedreuse.core.tensors import Tensors, sub

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel

__all__ = ["Ef21"]


@links.register("ef21")
@dataclass(frozen=True)
class Ef21(Link):
    """Keep the same estimate at both ends and send the codec's view of what it lacks.

    Args:
        codec: What is sent of the difference; it must contract (`top_k`, `ternary`, ...).

    Example: `uplink: {update: {name: ef21, codec: {name: top_k, ratio: 0.1}}}`.
    """

    has_memory: ClassVar[bool] = True

    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})

    def __post_init__(self) -> None:
        """Refuse a codec whose errors grow: the estimate follows its own errors."""
        require_contraction(self.codec, "ef21")

    def send(self, tensors: Tensors, state: Tensors | None, context: LinkContext) -> tuple[Parcel, Tensors]:
        """Send the difference to the estimate, and move the estimate by what will be decoded."""
        before = part_of(state, tensors.schema)
        parcel = self.codec.encode(sub(tensors, before), context.schema, context.rng)
        return parcel, follow(parcel, state, context.schema)[1]

    def receive(self, parcel: Parcel | None, state: Tensors | None, context: LinkContext) -> tuple[Tensors, Tensors]:
        """Move the estimate in the same way; it is what arrives."""
        if parcel is None:
            raise WireError("ef21 is never silent")
        return follow(parcel, state, context.schema)

    def delivered(self, parcel: Parcel | None, state: Tensors, context: LinkContext) -> Tensors:
        """The sender's own estimate of the tensors that were sent."""
        return followed(parcel, state, context.schema)
