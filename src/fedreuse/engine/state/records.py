"""What each end remembers, and the commit rule: an exchange counts, at both ends, iff the server absorbed the reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from fedreuse.core.int_map import IntMap
from fedreuse.core.values import value

if TYPE_CHECKING:
    from fedreuse.core.tensors import Tensors

__all__ = ["ClientMemory", "ClientRecord", "Contact", "Kept", "MemoryLost", "ServerRecord"]


class MemoryLost(Exception):
    """The client was asked to build on an exchange that it does not remember."""


@value
class Kept:
    """Groups a client holds until the round ends."""

    round_number: int
    groups: Mapping[str, Tensors]


@value
class ClientMemory:
    """A client's state and its ends of the links, after one exchange."""

    state: Any
    uplink: Mapping[str, Any] = field(default_factory=dict)
    downlink: Mapping[str, Any] = field(default_factory=dict)
    kept: Kept | None = None


@value
class ClientRecord:
    """The memories a client proposed, by exchange number; which of them counts, the next request's ack tells."""

    memories: Mapping[int, ClientMemory] = field(default_factory=dict)

    def resolve(self, ack: int, first: ClientMemory) -> ClientMemory:
        """The memory to go on from: that of the acknowledged exchange, or `first` where `ack` is 0 (first contact)."""
        if ack == 0:
            return first
        try:
            return self.memories[ack]
        except KeyError:
            raise MemoryLost(f"exchange {ack} is not among {sorted(self.memories)}") from None

    def propose(self, memory: ClientMemory, exchange: int, durable: int) -> ClientRecord:
        """Add a memory; forget what is older than the last one inside a server checkpoint."""
        kept = {number: known for number, known in self.memories.items() if number >= durable and number != exchange}
        return ClientRecord({**kept, exchange: memory})

    def committed(self, ack: int) -> ClientRecord:
        """Only the memory that counts, without what was kept for the round."""
        memory = self.memories.get(ack)
        return ClientRecord({} if memory is None else {ack: replace(memory, kept=None)})


@value
class Contact:
    """The server's side of one client: last absorbed exchange, the one before the checkpoint, ends of the links."""

    ack: int = 0
    durable: int = 0
    uplink: Mapping[str, Any] = field(default_factory=dict)
    downlink: Mapping[str, Any] = field(default_factory=dict)

    def durable_at(self, durable_exchange: int) -> int:
        """The absorbed exchange that the last checkpoint holds."""
        return self.ack if self.ack <= durable_exchange else self.durable


@value
class ServerRecord:
    """The method's server state, the contacts, the exchange counter, and what links share among clients, by group."""

    state: Any
    contacts: IntMap[Contact] = field(default_factory=IntMap)
    exchange: int = 0
    durable_exchange: int = 0
    shared: Mapping[str, Any] = field(default_factory=dict)
