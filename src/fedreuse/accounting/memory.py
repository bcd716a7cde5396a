"""What both ends hold in memory, by what for: caches, signatures, residuals."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from fedreuse.core.values import nbytes

__all__ = ["memory_of"]


class _Store(Protocol):
    def items(self) -> Iterable[tuple[int, Any]]:
        """Client records."""
        ...


def memory_of(record: Any, store: _Store) -> dict[str, int]:
    """Bytes by place: fields of the server's state, what its links share among clients, its ends of links, and the
    same of clients.

    Arrays that several places of one end share are counted once, at the first; what a client shares with the server
    in this process is the server's. `clients.all` and `server.all` are the sums.
    """
    server: set[int] = set()
    seen = server
    sizes: dict[str, int] = {}

    def add(place: str, tree: object) -> None:
        size = nbytes(tree, seen)
        if size:
            sizes[place] = sizes.get(place, 0) + size

    for name, part in _fields(record.state):
        add(f"server.{name}", part)
    for group, part in record.shared.items():
        add(f"server.shared {group}", part)
    contacts = list(record.contacts.values())  # held, for arrays are known by identity
    for contact in contacts:
        _add_links(add, "server", contact)
    for _client, kept in store.items():  # noqa: PERF102  (a client store is not a dictionary)
        seen = set(server)  # known by identity, which an array that a store let go of may pass on to the next client's
        for memory in kept.memories.values():
            for name, part in _fields(memory.state):
                add(f"clients.{name}", part)
            _add_links(add, "clients", memory)
    for end in ("server", "clients"):
        sizes[f"{end}.all"] = sum(size for place, size in sizes.items() if place.startswith(f"{end}."))
    return sizes


def _add_links(add: Any, end: str, holder: Any) -> None:
    links: Mapping[str, object]
    for direction in ("uplink", "downlink"):
        links = getattr(holder, direction)
        for group, tree in links.items():
            add(f"{end}.{direction} {group}", tree)


def _fields(state: object) -> list[tuple[str, object]]:
    if not dataclasses.is_dataclass(state) or isinstance(state, type):
        return []
    return [(field.name, getattr(state, field.name)) for field in dataclasses.fields(state)]
