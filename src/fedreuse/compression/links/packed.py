"""What another link sends, losslessly coded: fewer bytes travel, and the same numbers arrive."""

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
    """Code what another link sends without loss, where the link has no codec that could be packed, as `laq`.

    A coded block decodes to the same numbers, so that the other link's memory and receiver stay as they are.

    Args:
        link: The link whose parcels are coded; its own memory and decoding stay as they are.
        least: Tensors of fewer bytes stay as they are, at least 0.

    Example: `uplink: {update: {name: packed, link: {name: laq, bits: 4}}}`.

    """

    link: Link = part(links)
    least: int = 2048

    def __post_init__(self) -> None:
        """Check the range."""
        require(self.least >= 0, "packed.least must be at least 0", self.least)

    def send(self, tensors: Tensors, state: Any, context: LinkContext) -> tuple[Parcel | None, Any]:
        """The other link's parcel, each block coded; silence stays silence."""
        parcel, after = self.link.send(tensors, state, context)
        return (None if parcel is None else pack_parcel(parcel, context.schema, self.least)), after
