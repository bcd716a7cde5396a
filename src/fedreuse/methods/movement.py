"""A wrapper that adds the model's recent movement to every request; LAQ's clients need this number.

movement_t = sum_{d = 1 .. depth} xi / depth * |w_{t+1-d} - w_{t-d}|^2                     one number
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import require
from fedreuse.core.method import methods
from fedreuse.core.tensors import dot, sub
from fedreuse.core.values import value
from fedreuse.methods.wrapper import OF_INNER, Wrapper, WrapperServer

if TYPE_CHECKING:
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.message import Conversation
    from fedreuse.core.method import BufferPolicy, ClientHalf
    from fedreuse.core.model import Model
    from fedreuse.core.population import Population

__all__ = ["Movement", "MovementServer", "MovementState"]


@methods.register("movement", refuses=dict.fromkeys(("aggregate", "step", "prox"), OF_INNER))
@dataclass(frozen=True)
class Movement(Wrapper):
    """Any method whose requests also carry the model's movement in the last `depth` rounds.

    Each squared move counts xi / depth.

    Args:
        inner: The method whose requests get the additional value.
        depth: Number of the model's last moves that count, at least 0.
        xi: Total weight of these moves, at least 0.

    Example: `method: {name: movement, inner: fedavg}`.
    """

    depth: int = 10
    xi: float = 0.8

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.depth >= 0, "method.depth must not be negative", self.depth)
        require(self.xi >= 0, "method.xi must not be negative", self.xi)

    def halves(self, buffers: BufferPolicy) -> tuple[MovementServer, ClientHalf[Any]]:
        """Return the inner halves, with the server half wrapped."""
        server, client = self.inner.halves(buffers)
        return MovementServer(server, self.depth, self.xi), client


@value
class MovementState:
    """The inner state, and the last squared moves of the weights, newest first."""

    inner: Any
    moves: tuple[float, ...]


@dataclass(frozen=True)
class MovementServer(WrapperServer):
    """The server half: adds the value `movement` to every request of the inner server half."""

    depth: int
    xi: float

    def init(self, model: Model, population: Population) -> MovementState:
        """Return the state before the first round, without moves."""
        return MovementState(self.inner.init(model, population), ())

    def round(self, state: MovementState, cohort: Cohort) -> Conversation[MovementState]:
        """Run the inner round with one more value in every request."""
        movement = sum((self.xi / self.depth * move for move in state.moves), 0.0)
        conversation = self.inner.round(state.inner, cohort)
        requests = next(conversation)
        while True:
            extended = {
                client: replace(request, values={**request.values, "movement": movement})
                for client, request in requests.items()
            }
            replies = yield extended
            try:
                requests = conversation.send(replies)
            except StopIteration as finished:
                inner, events = finished.value
                return MovementState(inner, self._moves(state, inner)), events

    def _moves(self, before: MovementState, after: Any) -> tuple[float, ...]:
        # Of the models that clients receive, not of those that are evaluated: LAQ's rule compares gradients at the
        # former.
        step = sub(self.inner.broadcast(after).weights, self.broadcast(before).weights)
        return (dot(step, step), *before.moves)[: self.depth]
