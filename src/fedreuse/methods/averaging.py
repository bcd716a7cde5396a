"""Averaging: send the model, train, aggregate the updates, step.

D_t   = aggregate(delta_i, i in S)               by default the weighted mean
w_t+1 = w_t + step(D_t)                          by default D_t itself
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fedreuse.core.corrections import proximal
from fedreuse.core.errors import require
from fedreuse.core.message import Answer, Event, Events, Message
from fedreuse.core.method import ClientHalf, MethodConfig, methods
from fedreuse.core.model import Model, difference, from_groups, to_groups
from fedreuse.core.needs import Needs
from fedreuse.core.registry import part
from fedreuse.core.tensors import Tensors, to_dense
from fedreuse.core.values import value
from fedreuse.methods.aggregators.aggregator import Aggregator, aggregators, fresh_contributions, judged
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.methods.server_steps.server_step import ServerStep, advance, server_steps
from fedreuse.methods.server_steps.sgd import SgdStep
from fedreuse.methods.stepping import SteppingServer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Conversation, Replies
    from fedreuse.core.method import BufferPolicy
    from fedreuse.core.population import Population, Weighting
    from fedreuse.methods.aggregators.aggregator import Contribution

__all__ = [
    "Averaging", "AveragingServer", "AveragingState", "LastTraining", "SlopeClient", "TrainingClient", "average",
    "update_of", "updates_of",
]  # fmt: skip

_SLOPE = "slope"
_SAMPLE = 1 << 14
"""Largest number of coordinates from which a client computes its slope."""


@value
class AveragingState:
    """The model, and the state of the server step."""

    model: Model
    step: Any = None


@methods.register("averaging")
@dataclass(frozen=True)
class Averaging(MethodConfig):
    """FedAvg's round with a configurable proximal term, aggregator and server step.

    Args:
        prox: Strength of the proximal term, which pulls every local step towards the received model; at least 0
            (FedProx's mu).
        aggregate: Aggregator that turns the updates of a round into one direction.
        step: Server optimizer that moves the model along it.

    Example: `method: {name: averaging, prox: 0.01, aggregate: {name: mean}, step: {name: adam, lr: 0.01}}`.
    """

    prox: float = 0.0
    aggregate: Aggregator = part(aggregators, "mean")
    step: ServerStep = part(server_steps, "sgd")

    def __post_init__(self) -> None:
        """Check the range."""
        require(self.prox >= 0, "method.prox must not be negative", self.prox)

    @property
    def needs(self) -> Needs:
        """Corrections of local steps, for the proximal term."""
        return Needs(corrections=self.prox > 0)

    def halves(self, buffers: BufferPolicy) -> tuple[AveragingServer, TrainingClient | SlopeClient]:
        """Return both halves; every client is fresh, so both buffer policies are the same arithmetic."""
        del buffers
        client = SlopeClient(self.prox) if self.step.reads_slopes else TrainingClient(self.prox)
        return AveragingServer(self.step, self.aggregate), client


@dataclass(frozen=True)
class AveragingServer(SteppingServer[AveragingState]):
    """The server half: one exchange, in which the cohort trains and the replies are aggregated."""

    step: ServerStep = field(default_factory=SgdStep)
    aggregate: Aggregator = field(default_factory=Mean)

    def init(self, model: Model, population: Population) -> AveragingState:
        """Return the state before the first round."""
        del population
        return AveragingState(model, self.step.init(model.weights))

    def round(self, state: AveragingState, cohort: Cohort) -> Conversation[AveragingState]:
        """Send the model to the cohort; aggregate the replies that arrive."""
        # One message object for all clients: ports encode it once.
        answer = replace(update_of(state.model), values={_SLOPE: float} if self.step.reads_slopes else {})
        request = Message("train", to_groups(state.model, "model"), answers=(answer,))
        replies = yield dict.fromkeys(cohort.clients, request)
        events = tuple(Event(client, "fresh" if client in replies else "lost") for client in cohort.clients)
        if not replies:
            return state, Events(events)  # no reply arrived: the model is unchanged
        contributions = fresh_contributions(updates_of(replies, state.model), cohort)
        if self.step.reads_slopes:
            contributions = _with_slopes(contributions, replies, cohort)
        made = self.aggregate.aggregate(contributions, cohort, state.model.schema)
        model, step, num_kept = advance(self.step, state.model, made.direction, state.step, made.statistics)
        return AveragingState(model, step), Events(judged(events, made.verdicts), {"kept variances": num_kept})


@dataclass(frozen=True)
class TrainingClient(ClientHalf[None]):
    """The client half: trains from the received model with a proximal term `mu`, sends the update, keeps no state."""

    has_state: ClassVar[bool] = False

    mu: float = 0.0

    def init(self) -> None:
        """Return None: the client keeps no state."""

    def answer(self, request: Message, state: None, trainer: LocalTrainer) -> tuple[Message, None]:
        """Train and reply with the difference of trained and received model."""
        received = from_groups(request.groups, "model", trainer.schema)
        trained = trainer.train(received, proximal(received.weights, self.mu))
        return Message("update", to_groups(difference(trained.model, received), "update")), state

    def settle(self, state: None, delivered: Message) -> None:
        """Return None: the client keeps no state."""


@value
class LastTraining:
    """A sample of the coordinates of the model that a client received last, and of its update."""

    received: np.ndarray
    update: np.ndarray

    def slope_since(self, last: LastTraining | None) -> float:
        """Return the g of update - last update = -g (received - last received), by least squares; 0 if undefined."""
        if last is None or last.received.shape != self.received.shape:
            return 0.0
        moved, changed = self.received - last.received, self.update - last.update
        square = float(np.sum(moved * moved))
        return -float(np.sum(changed * moved)) / square if square else 0.0


@dataclass(frozen=True)
class SlopeClient(ClientHalf[LastTraining | None]):
    """A client half that trains like `TrainingClient` and reports the slope of its updates; 0 with the first one."""

    mu: float = 0.0

    def init(self) -> None:
        """Return None: nothing was trained yet."""

    def answer(
        self, request: Message, state: LastTraining | None, trainer: LocalTrainer
    ) -> tuple[Message, LastTraining]:
        """Train and reply with the update and its slope."""
        reply, _ = TrainingClient(self.mu).answer(request, None, trainer)
        now = LastTraining(_sampled(request.groups["model"]), _sampled(reply.groups["update"]))
        return replace(reply, values={_SLOPE: now.slope_since(state)}), now


def _sampled(tensors: Tensors) -> np.ndarray:
    """Return evenly spaced coordinates, all of a small model, in double precision."""
    values = to_dense(tensors).values
    sampled: np.ndarray = values[:: max(1, -(-len(values) // _SAMPLE))].astype(np.float64)
    sampled.flags.writeable = False  # states are values
    return sampled


def _with_slopes(
    contributions: Mapping[int, Contribution], replies: Replies, cohort: Cohort
) -> dict[int, Contribution]:
    """Return the contributions with the clients' slopes and the rates at which their models follow the server's."""
    participation = len(cohort.clients) / len(cohort.population)
    completed = {}
    for client, one in contributions.items():
        lag, slope = replies[client].lag, replies[client].values[_SLOPE]
        follows = None if lag is None else lag.rate(participation)
        completed[client] = replace(one, follows=follows, slope=float(slope) or None)  # type: ignore[arg-type]  # as the answer says
    return completed


def average(updates: Mapping[int, Model], cohort: Cohort, weighting: Weighting, like: Model) -> Model:
    """Return the weighted mean of updates; buffers and counters always by ratio: their weights must sum to one."""
    return Mean(weighting).aggregate(fresh_contributions(updates, cohort), cohort, like.schema).direction


def update_of(model: Model) -> Answer:
    """Return the expected reply of a client that trained: an update of weights, buffers and counters."""
    return Answer("update", {group: tensors.schema for group, tensors in to_groups(model, "update").items()})


def updates_of(replies: Replies, model: Model) -> dict[int, Model]:
    """Return the updates of replies, in client order."""
    return {client: from_groups(replies[client].groups, "update", model.schema) for client in sorted(replies)}
