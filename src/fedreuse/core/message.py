"""What one half says to the other, and the conversation made of it."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors

__all__ = [
    "EMPTY", "Answer", "ClientId", "Conversation", "Event", "Events", "Message", "Outcome", "Replies", "Requests",
    "Value",
]  # fmt: skip

S = TypeVar("S")
ClientId = int
Value = bool | int | float | str | tuple["Value", ...]
EMPTY: Mapping[str, Any] = MappingProxyType({})
Outcome = Literal["fresh", "reused", "dropped", "lost"]


@dataclass(frozen=True, eq=False)
class Answer:
    """What a reply must be: of this kind, with these groups and values, no more and no fewer.

    Each group must hold at least the tensors of its schema; each value must be of its type.
    """

    kind: str
    groups: Mapping[str, Schema] = field(default_factory=lambda: EMPTY)
    values: Mapping[str, type] = field(default_factory=lambda: EMPTY)

    def __str__(self) -> str:
        """In words, for whoever reads why a reply was refused."""
        values = (f"{name}: {kind.__name__}" for name, kind in self.values.items())
        return f"{self.kind} ({', '.join([*self.groups, *values]) or 'nothing'})"


@dataclass(frozen=True, eq=False)
class Message:
    """A kind, groups of named tensors, a few small values.

    `keep` asks the client to hold the groups until the round ends: a later request of the same round that lacks a group
    finds it there, so the model need not travel twice. `answers`, which stay at the server, are the replies that may
    answer a request: any other is refused before the server half sees it. A request without them takes anything.
    """

    kind: str
    groups: Mapping[str, Tensors] = field(default_factory=lambda: EMPTY)
    values: Mapping[str, Value] = field(default_factory=lambda: EMPTY)
    keep: bool = False
    answers: tuple[Answer, ...] = ()


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
