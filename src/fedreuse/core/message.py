"""What one half says to the other, and the conversation made of it."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from fedreuse.tensors import Tensors

__all__ = ["EMPTY", "ClientId", "Conversation", "Event", "Events", "Message", "Outcome", "Replies", "Requests", "Value"]

S = TypeVar("S")
ClientId = int
Value = bool | int | float | str | tuple["Value", ...]
EMPTY: Mapping[str, Any] = MappingProxyType({})
Outcome = Literal["fresh", "reused", "dropped", "lost"]


@dataclass(frozen=True, eq=False)
class Message:
    """A kind, groups of named tensors, a few small values.

    `keep` asks the client to hold the groups until the round ends: a later request of the same round that lacks a group
    finds it there, so the model need not travel twice.
    """

    kind: str
    groups: Mapping[str, Tensors] = field(default_factory=lambda: EMPTY)
    values: Mapping[str, Value] = field(default_factory=lambda: EMPTY)
    keep: bool = False


@dataclass(frozen=True)
class Event:
    """How one selected client's contribution of one round came about."""

    client: ClientId
    outcome: Outcome
    reason: str = ""
    age: int | None = None
    score: float | None = None


@dataclass(frozen=True)
class Events:
    """One event per selected client, and counts a method wants on record (for example kept variances)."""

    clients: tuple[Event, ...]
    counts: Mapping[str, int] = field(default_factory=lambda: EMPTY)


Requests = Mapping[ClientId, Message]
Replies = Mapping[ClientId, Message]
Conversation = Generator[Requests, Replies, tuple[S, Events]]
