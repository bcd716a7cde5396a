"""A link for each client: every client's group passes through its own one of several links."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fedreuse.compression.links.link import links as registry
from fedreuse.compression.links.link import parse_link
from fedreuse.core.errors import ConfigError, require
from fedreuse.core.method import Link
from fedreuse.core.registry import named_plain

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.method import LinkContext
    from fedreuse.core.tensors import Tensors

__all__ = ["ByClient"]


def _parse_links(value: object, where: str) -> tuple[Link, ...]:
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{where}: a list of links expected, got {value!r}")
    return tuple(parse_link(spec, f"{where}.{place}") for place, spec in enumerate(value))


def _default() -> tuple[Link, ...]:
    return (parse_link("error_feedback", "links"),)


@registry.register("by_client")
@dataclass(frozen=True)
class ByClient(Link):
    """Several links, of which each client uses one, such as one with a smaller byte budget on a slow line.

    Args:
        links: The links.
        of: The place in `links` of each client's link, from 0; one entry per client. Empty: all use the first link.

    Raises:
        ConfigError: If there is no link, an entry of `of` names none, or a link shares a state among clients.

    Example: `uplink: {update: {name: by_client, links: [error_feedback, {name: plain, codec: dense}], of: [0, 0, 1]}}`.
    """

    links: tuple[Link, ...] = field(default_factory=_default, metadata={"parse": _parse_links})
    of: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check that every client has a link."""
        require(len(self.links) > 0, "by_client.links must not be empty", list(self.links))
        wrong = [place for place in self.of if not 0 <= place < len(self.links)]
        require(not wrong, f"by_client.of must name links from 0 to {len(self.links) - 1}", wrong)
        shared = [registry.name_of(link) for link in self.links if link.sends_shared]
        require(not shared, "by_client.links must not send the same to all clients", shared)

    def to_plain(self) -> dict[str, Any]:
        """Return the links as plain data."""
        return {"links": [named_plain(registry, link) for link in self.links], "of": list(self.of)}

    @property
    def has_memory(self) -> bool:
        """True if a link has memory."""
        return any(link.has_memory for link in self.links)

    @property
    def uses_reference(self) -> bool:
        """True if a link uses the reference."""
        return any(link.uses_reference for link in self.links)

    @property
    def drops_coordinates(self) -> bool:
        """True if a link drops coordinates."""
        return any(link.drops_coordinates for link in self.links)

    def link_of(self, client: int) -> Link:
        """Return the link of a client.

        Raises:
            ConfigError: If the client has none.
        """
        if not self.of:
            return self.links[0]
        if not 0 <= client < len(self.of):
            raise ConfigError(f"by_client.of has {len(self.of)} entries, none for client {client}; add one per client")
        return self.links[self.of[client]]

    def send(self, tensors: Tensors, state: Any, context: LinkContext) -> tuple[Parcel | None, Any]:
        """Delegate to the client's link."""
        return self.link_of(context.client).send(tensors, state, context)

    def receive(self, parcel: Parcel | None, state: Any, context: LinkContext) -> tuple[Tensors, Any]:
        """Delegate to the client's link."""
        return self.link_of(context.client).receive(parcel, state, context)

    def held(self, state: Any, context: LinkContext) -> Tensors | None:
        """Delegate to the client's link."""
        return self.link_of(context.client).held(state, context)

    def delivered(self, parcel: Parcel | None, state: Any, context: LinkContext) -> Tensors:
        """Delegate to the client's link."""
        return self.link_of(context.client).delivered(parcel, state, context)
