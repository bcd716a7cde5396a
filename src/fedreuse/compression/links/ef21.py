"""EF21 (Richtarik et al., 2021): both ends hold an estimate of the update and add a compressed difference to it.

q_t     = C(delta_t - g_t)                  sent
g_{t+1} = g_t + decoded(q_t)                at both ends, delivered                            g_0 = 0
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
    """EF21: the same estimate at both ends, updated by a compressed difference.

    Args:
        codec: Codec of the difference; must be contractive (`top_k`, `ternary`, ...).

    Raises:
        ConfigError: If the codec is not contractive.

    Example: `uplink: {update: {name: ef21, codec: {name: top_k, ratio: 0.1}}}`.
    """

    has_memory: ClassVar[bool] = True

    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})

    def __post_init__(self) -> None:
        """Check that the codec is contractive: its errors stay in the estimate."""
        require_contraction(self.codec, "ef21")

    def send(self, tensors: Tensors, state: Tensors | None, context: LinkContext) -> tuple[Parcel, Tensors]:
        """Send the difference to the estimate, and update the estimate by the decoded parcel."""
        before = part_of(state, tensors.schema)
        parcel = self.codec.encode(sub(tensors, before), context.schema, context.rng)
        return parcel, follow(parcel, state, context.schema)[1]

    def receive(self, parcel: Parcel | None, state: Tensors | None, context: LinkContext) -> tuple[Tensors, Tensors]:
        """Update the receiver's estimate in the same way and return it."""
        if parcel is None:
            raise WireError("ef21 always sends a parcel")
        return follow(parcel, state, context.schema)

    def delivered(self, parcel: Parcel | None, state: Tensors, context: LinkContext) -> Tensors:
        """Return the sender's estimate of the tensors that were sent."""
        return followed(parcel, state, context.schema)
