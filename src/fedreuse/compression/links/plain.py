"""A stateless link: encode, send, decode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.links.link import links
from fedreuse.core.errors import WireError
from fedreuse.core.method import Link, LinkContext
from fedreuse.core.registry import part

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.tensors import Tensors

__all__ = ["Plain"]


@links.register("plain")
@dataclass(frozen=True)
class Plain(Link):
    """A stateless link; the codec's error is lost.

    Args:
        codec: Encodes the tensors.

    Example: `uplink: {update: {name: plain, codec: {name: top_k, ratio: 0.2}}}`.
    """

    has_memory: ClassVar[bool] = False

    codec: Codec = part(codecs, "dense")

    @property
    def uses_reference(self) -> bool:
        """True if the codec uses the reference."""
        return self.codec.uses_reference

    @property
    def drops_coordinates(self) -> bool:
        """True if the codec drops coordinates."""
        return self.codec.drops_coordinates

    def send(self, tensors: Tensors, state: None, context: LinkContext) -> tuple[Parcel, None]:
        """Encode, against the reference if the codec uses it."""
        del state
        return self.codec.encode_against(tensors, context.schema, context.rng, context.reference), None

    def receive(self, parcel: Parcel | None, state: None, context: LinkContext) -> tuple[Tensors, None]:
        """Decode."""
        del state
        if parcel is None:
            raise WireError("a plain link always sends a parcel")
        return parcel.decode(context.schema, context.reference), None

    def delivered(self, parcel: Parcel | None, state: None, context: LinkContext) -> Tensors:
        """Decode as the receiver does."""
        return self.receive(parcel, state, context)[0]
