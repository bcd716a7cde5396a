"""Lossless entropy coding of another link's parcels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.compression.codecs.packed import pack_parcel
from fedreuse.compression.links.around import AroundLink
from fedreuse.compression.links.link import links
from fedreuse.core.errors import require
from fedreuse.core.method import Link
from fedreuse.core.registry import part

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.method import LinkContext
    from fedreuse.core.tensors import Tensors

__all__ = ["PackedLink"]


@links.register("packed")
@dataclass(frozen=True)
class PackedLink(AroundLink):
    """Lossless entropy coding of the parcels of a link without a codec, such as `laq`.

    A coded block decodes to the same values, so the wrapped link's state and decoding do not change.

    Args:
        link: The link whose parcels are coded.
        least: Tensors of fewer bytes are not coded, at least 0.

    Raises:
        ConfigError: If `least` is negative.

    Example: `uplink: {update: {name: packed, link: {name: laq, bits: 4}}}`.
    """

    link: Link = part(links)
    least: int = 2048

    def __post_init__(self) -> None:
        """Check the range."""
        require(self.least >= 0, "packed.least must be at least 0", self.least)

    def send(self, tensors: Tensors, state: Any, context: LinkContext) -> tuple[Parcel | None, Any]:
        """Return the wrapped link's parcel with coded blocks, or None if it sends nothing."""
        parcel, after = self.link.send(tensors, state, context)
        return (None if parcel is None else pack_parcel(parcel, context.schema, self.least)), after
