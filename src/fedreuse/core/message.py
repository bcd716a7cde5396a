"""Messages between the server half and the client half of a method, and the events of a round."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from fedreuse.core.numbers import Numbers
    from fedreuse.core.schema import ModelSchema, Schema
    from fedreuse.core.tensors import Tensors

__all__ = [
    "EMPTY", "LOST", "Answer", "ClientId", "Conversation", "Event", "Events", "Lag", "Message", "Outcome", "Replies",
    "Requests", "Value",
]  # fmt: skip

S = TypeVar("S")
ClientId = int
Value = bool | int | float | str | bytes | tuple["Value", ...]
EMPTY: Mapping[str, Any] = MappingProxyType({})
Outcome = Literal["fresh", "reused", "dropped", "lost"]
LOST = "lost"
"""Kind of the message that an asynchronous server half gets for a request whose reply is lost or refused."""
_TYPES: Mapping[str, type] = {kind.__name__: kind for kind in (bool, int, float, str, tuple)}


@dataclass(frozen=True, eq=False)
class Answer:
    """The required form of a reply: its kind and exactly these groups and values.

    Args:
        kind: The reply's kind.
        groups: The schema of each group; the group must hold at least the tensors of its schema.
        values: The type of each value, or its `Numbers`.

    Example:
        >>> from fedreuse import Answer, Schema, TensorSpec
        >>> weights = Schema((TensorSpec("fc.weight", (10, 4)),))
        >>> str(Answer("update", groups={"update": weights}, values={"steps": int}))
        'update (update, steps: int)'
    """

    kind: str
    groups: Mapping[str, Schema] = field(default_factory=lambda: EMPTY)
    values: Mapping[str, type | Numbers] = field(default_factory=lambda: EMPTY)

    def to_plain(self) -> tuple[Any, ...]:
        """Return kind, tensor names by group and names of types by value, as part of a state."""
        groups = tuple((group, tuple(schema.positions)) for group, schema in self.groups.items())
        return self.kind, groups, tuple((name, kind.__name__) for name, kind in self.values.items())

    @classmethod
    def from_plain(cls, plain: tuple[Any, ...], schema: ModelSchema) -> Answer:
        """Return the answer of `to_plain`, for a model's schema."""
        kind, groups, values = plain
        parts = {group: schema.of_group(group).subset(names) for group, names in groups}
        return cls(kind, parts, {name: _TYPES[of] for name, of in values})

    def __str__(self) -> str:
        """Return a short description for messages about refused replies."""
        values = (f"{name}: {kind.__name__}" for name, kind in self.values.items())
        return f"{self.kind} ({', '.join([*self.groups, *values]) or 'nothing'})"


@dataclass(frozen=True)
class Lag:
    """Euclidean distance between the server's model and the one that a client holds, before and after a request.

    Args:
        before: The distance before the request.
        after: The distance after it, which a lossless downlink makes 0.
        is_shared: True if all clients hold the same tensors, which change once per round and not once per request.
        age: Rounds since the initial model, if that is what the client held before the request; None otherwise.

    Example:
        >>> from fedreuse.core.message import Lag
        >>> Lag(before=2.0, after=0.5).rate(participation=0.2)
        0.6000000000000001
    """

    before: float
    after: float
    is_shared: bool = False
    age: int | None = None

    def rate(self, participation: float) -> float | None:
        """Return the rate per round at which the held model follows; None if it holds the server's model.

        A client that is asked with probability p per round and keeps a share rho of the distance holds an average of
        past models that is rho / (p (1 - rho)) rounds old. A client that held the initial model, which is `age`
        rounds old, and keeps a share rho of the distance holds a model that is rho * age rounds old: how rarely it is
        asked does not matter.
        """
        if not self.after:
            return None
        if self.age is not None:
            return self.before / (self.after * self.age)
        return (1.0 if self.is_shared else participation) * max(0.0, self.before - self.after) / self.after


@dataclass(frozen=True, eq=False)
class Message:
    """A request or a reply: a kind, groups of named tensors, and a few small values.

    Args:
        kind: The type of the request or reply, such as `train`, `score` or `update`.
        groups: Tensors by group name; each group has a link of its own.
        values: Small values that are sent uncompressed: bool, int, float, str, tuples of these, or the bytes of
            numbers (`core.numbers`).
        keep: Ask the client to hold the groups until the round ends. A later request of the same round that lacks a
            group uses the held one, so the model is sent only once.
        answers: The replies that a request accepts; any other is refused before the server half receives it. They are
            not sent. A request without them accepts any reply.
        lag: Of a reply at the server, the lag of the client's model; None if the downlink keeps no model. Not sent.

    Example:
        >>> from fedreuse import Answer, Message
        >>> request = Message("score", values={"batches": 5}, answers=(Answer("score", values={"score": float}),))
        >>> request.kind, str(request.answers[0])
        ('score', 'score (score: float)')
    """

    kind: str
    groups: Mapping[str, Tensors] = field(default_factory=lambda: EMPTY)
    values: Mapping[str, Value] = field(default_factory=lambda: EMPTY)
    keep: bool = False
    answers: tuple[Answer, ...] = ()
    lag: Lag | None = None


@dataclass(frozen=True)
class Event:
    """The outcome of one selected client in one round.

    Args:
        client: The client's id, from 0.
        outcome: `fresh` (it trained), `reused` (its cached update was used), `dropped` (it was left out) or `lost` (no
            valid reply arrived).
        reason: The cause in a word or two: `no cache`, `age`, `score`, `quota`.
        age: Rounds since the cached update was trained, if there is one.
        score: The gate's score, if the client was scored.

    Example:
        >>> from fedreuse import Event
        >>> Event(3, "reused", age=2, score=0.4).outcome
        'reused'
    """

    client: ClientId
    outcome: Outcome
    reason: str = ""
    age: int | None = None
    score: float | None = None


@dataclass(frozen=True)
class Events:
    """The outcomes of a round: one event per selected client, and counts that a method records.

    Args:
        clients: The events, one for each client of the cohort.
        counts: Numbers by name that are summed over the rounds, such as `kept variances`.

    Example:
        >>> from fedreuse import Event, Events
        >>> events = Events((Event(0, "fresh"), Event(4, "lost")), {"kept variances": 0})
        >>> [event.client for event in events.clients]
        [0, 4]
    """

    clients: tuple[Event, ...]
    counts: Mapping[str, int] = field(default_factory=lambda: EMPTY)


Requests = Mapping[ClientId, Message]
Replies = Mapping[ClientId, Message]
Conversation = Generator[Requests, Replies, tuple[S, Events]]
