"""Records of server and clients, and the commit rule that keeps both ends consistent.

Commit rule: an exchange counts at both ends if and only if the server absorbed its reply. The client cannot know that
when it replies, so it only *proposes* a new memory and keeps the former one. Each request carries two numbers: `ack`,
the last exchange of this client that the server absorbed, says which memory to build on; `durable`, the last absorbed
exchange inside a server checkpoint, says which older memories will never be asked for again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from fedreuse.core.int_map import IntMap
from fedreuse.core.values import value

if TYPE_CHECKING:
    import numpy as np

    from fedreuse.core.tensors import Tensors

__all__ = ["ClientMemory", "ClientRecord", "Contact", "Flight", "Kept", "MemoryLost", "ServerRecord"]


class MemoryLost(Exception):
    """A request that builds on an exchange of which the client has no memory."""


@value
class Kept:
    """Groups a client holds until the round ends."""

    round_number: int
    groups: Mapping[str, Tensors]


@value
class ClientMemory:
    """A client's method state and link states after one exchange."""

    state: Any
    uplink: Mapping[str, Any] = field(default_factory=dict)
    downlink: Mapping[str, Any] = field(default_factory=dict)
    kept: Kept | None = None


@value
class ClientRecord:
    """Memories proposed by a client, by exchange number; the next request's `ack` selects the one that counts."""

    memories: Mapping[int, ClientMemory] = field(default_factory=dict)

    def resolve(self, ack: int, first: ClientMemory) -> ClientMemory:
        """Return the memory of the acknowledged exchange, or `first` if `ack` is 0 (first contact)."""
        if ack == 0:
            return first
        try:
            return self.memories[ack]
        except KeyError:
            raise MemoryLost(f"exchange {ack} is not among {sorted(self.memories)}") from None

    def propose(self, memory: ClientMemory, exchange: int, durable: int) -> ClientRecord:
        """Add a memory and drop those older than `durable`, the last exchange inside a server checkpoint."""
        kept = {number: known for number, known in self.memories.items() if number >= durable and number != exchange}
        return ClientRecord({**kept, exchange: memory})

    def committed(self, ack: int) -> ClientRecord:
        """Return the acknowledged memory only, without the groups kept for the round."""
        memory = self.memories.get(ack)
        return ClientRecord({} if memory is None else {ack: replace(memory, kept=None)})


@value
class Contact:
    """The server's record of one client: last absorbed exchange, last one inside a checkpoint, link states."""

    ack: int = 0
    durable: int = 0
    uplink: Mapping[str, Any] = field(default_factory=dict)
    downlink: Mapping[str, Any] = field(default_factory=dict)

    def durable_at(self, durable_exchange: int) -> int:
        """Return the last absorbed exchange inside the checkpoint that was written after `durable_exchange`."""
        return self.ack if self.ack <= durable_exchange else self.durable


@value
class Flight:
    """A request under way, of an asynchronous method, and the reply that will arrive.

    Attributes:
        round_number: The round in which the request was sent.
        exchange: Its exchange.
        arrives: Simulated second at which the reply arrives, or at which its loss is noticed.
        reply: The serialized reply; None if it is lost or, in real time, not here yet.
        work: The client's computation, by the fields of `Work`.
        downlink: Link states of the server if the reply is absorbed.
        values: Small values of the request.
        held: Groups that the client holds, for links that use them.
        answers: Replies that the request accepts: kind, tensor names by group, names of types by value.
    """

    round_number: int
    exchange: int
    arrives: float
    reply: np.ndarray | None
    work: tuple[float, ...]
    downlink: Mapping[str, Any]
    values: Mapping[str, Any]
    held: Mapping[str, Tensors]
    answers: tuple[Any, ...]


@value
class ServerRecord:
    """The server's side of a run between rounds.

    Attributes:
        state: The method's server state.
        contacts: Link states and acknowledged exchanges by client.
        exchange: Number of the last exchange.
        durable_exchange: Number of the last exchange inside a checkpoint.
        shared: Link states common to all clients.
        seconds: Simulated time; 0 without devices.
        flights: Requests under way by client, of an asynchronous method.
    """

    state: Any
    contacts: IntMap[Contact] = field(default_factory=IntMap)
    exchange: int = 0
    durable_exchange: int = 0
    shared: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    flights: IntMap[Flight] = field(default_factory=IntMap)
