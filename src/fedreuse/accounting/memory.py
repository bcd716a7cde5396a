"""Memory that server and clients hold between rounds, by purpose: caches, signatures, residuals."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from fedreuse.core.values import nbytes

__all__ = ["memory_of"]


class _Store(Protocol):
    def items(self) -> Iterable[tuple[int, Any]]:
        """Iterate over client ids and records."""
        ...


def memory_of(record: Any, store: _Store) -> dict[str, int]:
    """Return bytes by holder: fields of the server's and the clients' states, shared and per-client link states.

    An array that several holders of one end share is counted once, for the first; an array that a client shares with
    the server in this process counts for the server. `clients.all` and `server.all` are the sums.
    """
    server: set[int] = set()
    seen = server
    sizes: dict[str, int] = {}

    def add(holder: str, tree: object) -> None:
        size = nbytes(tree, seen)
        if size:
            sizes[holder] = sizes.get(holder, 0) + size

    for name, part in _fields(record.state):
        add(f"server.{name}", part)
    for group, part in record.shared.items():
        add(f"server.shared {group}", part)
    contacts = list(record.contacts.values())  # held while counting: `seen` holds ids, which freed arrays would reuse
    for contact in contacts:
        _add_links(add, "server", contact)
    add("server.under way", record.flights)
    for _client, kept in store.items():  # noqa: PERF102  (a client store is not a dictionary)
        seen = set(server)  # anew per client: the store may free a client's arrays, and the next would reuse their ids
        for memory in kept.memories.values():
            for name, part in _fields(memory.state):
                add(f"clients.{name}", part)
            _add_links(add, "clients", memory)
    for end in ("server", "clients"):
        sizes[f"{end}.all"] = sum(size for holder, size in sizes.items() if holder.startswith(f"{end}."))
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
