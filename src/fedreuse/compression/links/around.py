"""Base class of links that wrap another link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.compression.links.link import links
from fedreuse.core.method import Link
from fedreuse.core.registry import part

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.method import LinkContext
    from fedreuse.core.tensors import Tensors

__all__ = ["AroundLink"]


@dataclass(frozen=True)
class AroundLink(Link):
    """A link that changes the input or output of another link and delegates everything else to it."""

    link: Link = part(links)

    @property
    def has_memory(self) -> bool:
        """True if the wrapped link has memory."""
        return self.link.has_memory

    @property
    def uses_reference(self) -> bool:
        """True if the wrapped link uses the reference."""
        return self.link.uses_reference

    @property
    def drops_coordinates(self) -> bool:
        """True if the wrapped link drops coordinates."""
        return self.link.drops_coordinates

    @property
    def sends_shared(self) -> bool:
        """True if the wrapped link sends a shared state."""
        return self.link.sends_shared

    def share(self, tensors: Tensors, shared: Any, context: LinkContext) -> Any:
        """Delegate to the wrapped link."""
        return self.link.share(tensors, shared, context)

    def send(self, tensors: Tensors, state: Any, context: LinkContext) -> tuple[Parcel | None, Any]:
        """Delegate to the wrapped link."""
        return self.link.send(tensors, state, context)

    def receive(self, parcel: Parcel | None, state: Any, context: LinkContext) -> tuple[Tensors, Any]:
        """Delegate to the wrapped link."""
        return self.link.receive(parcel, state, context)

    def held(self, state: Any, context: LinkContext) -> Tensors | None:
        """Delegate to the wrapped link."""
        return self.link.held(state, context)

    def delivered(self, parcel: Parcel | None, state: Any, context: LinkContext) -> Tensors:
        """Delegate to the wrapped link."""
        return self.link.delivered(parcel, state, context)
