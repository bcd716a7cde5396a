"""The averaging conversation: send the model, train, aggregate the updates, move.

D_t   = aggregate(delta_i, i in S)               the weighted mean, unless another aggregator is named
w_t+1 = w_t + step(D_t)                          the direction itself, unless another server step is named
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fedreuse.core.corrections import proximal
from fedreuse.core.errors import require
from fedreuse.core.message import Answer, Event, Events, Message
from fedreuse.core.method import ClientHalf, MethodConfig, methods
from fedreuse.core.model import Model, difference, from_groups, to_groups
from fedreuse.core.needs import Needs
from fedreuse.core.registry import part
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

__all__ = ["Averaging", "AveragingServer", "AveragingState", "TrainingClient", "average", "update_of", "updates_of"]


@value
class AveragingState:
    """The model, and what the server step remembers."""

    model: Model
    step: Any = None


@methods.register("averaging")
@dataclass(frozen=True)
class Averaging(MethodConfig):
    """Train, aggregate and step, as FedAvg does, with every part free to choose.

    Args:
        prox: Strength of the pull towards the received model in every local step, at least 0; FedProx's mu.
        aggregate: How the updates of a round become one direction.
        step: How the server moves along it.

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
        """A pull enters every step."""
        return Needs(corrections=self.prox > 0)

    def halves(self, buffers: BufferPolicy) -> tuple[AveragingServer, TrainingClient]:
        """Both halves; every client is fresh, so both buffer policies are the same arithmetic."""
        del buffers
        return AveragingServer(self.step, self.aggregate), TrainingClient(self.prox)


@dataclass(frozen=True)
class AveragingServer(SteppingServer[AveragingState]):
    """One exchange: everybody selected trains, whoever answers is averaged."""

    step: ServerStep = field(default_factory=SgdStep)
    aggregate: Aggregator = field(default_factory=Mean)

    def init(self, model: Model, population: Population) -> AveragingState:
        """The state before the first round."""
        del population
        return AveragingState(model, self.step.init(model.weights))

    def round(self, state: AveragingState, cohort: Cohort) -> Conversation[AveragingState]:
        """Ask everybody to train; aggregate the replies that come."""
        request = Message("train", to_groups(state.model, "model"), answers=(update_of(state.model),))
        replies = yield dict.fromkeys(cohort.clients, request)
        events = tuple(Event(client, "fresh" if client in replies else "lost") for client in cohort.clients)
        if not replies:
            return state, Events(events)  # nobody answered: the model stands still
        contributions = fresh_contributions(updates_of(replies, state.model), cohort)
        made = self.aggregate.aggregate(contributions, cohort, state.model.schema)
        model, step, num_kept = advance(self.step, state.model, made.direction, state.step, made.statistics)
        return AveragingState(model, step), Events(judged(events, made.verdicts), {"kept variances": num_kept})


@dataclass(frozen=True)
class TrainingClient(ClientHalf[None]):
    """Trains from the received model, with a pull of strength `mu` back to it; sends the update, remembers nothing."""

    mu: float = 0.0

    def init(self) -> None:
        """Nothing to remember."""

    def answer(self, request: Message, state: None, trainer: LocalTrainer) -> tuple[Message, None]:
        """Train and reply with trained minus received."""
        received = from_groups(request.groups, "model", trainer.schema)
        trained = trainer.train(received, proximal(received.weights, self.mu))
        return Message("update", to_groups(difference(trained.model, received), "update")), state

    def settle(self, state: None, delivered: Message) -> None:
        """Nothing depends on what arrived."""


def average(updates: Mapping[int, Model], cohort: Cohort, weighting: Weighting, like: Model) -> Model:
    """Weighted mean of updates; buffers and counters always by ratio, for their weights must sum to one."""
    return Mean(weighting).aggregate(fresh_contributions(updates, cohort), cohort, like.schema).direction


def update_of(model: Model) -> Answer:
    """The answer of a client that trained: an update of all that the model is made of."""
    return Answer("update", {group: tensors.schema for group, tensors in to_groups(model, "update").items()})


def updates_of(replies: Replies, model: Model) -> dict[int, Model]:
    """The updates that replies carry, in client order."""
    return {client: from_groups(replies[client].groups, "update", model.schema) for client in sorted(replies)}
