"""The template of the averaging family: send the model, train, average the updates, move.

w_t+1 = w_t + server_lr * sum_S omega_i delta_i        omega_i = n_i / sum_S n_j
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fedreuse.core.corrections import proximal
from fedreuse.core.message import Answer, Event, Events, Message
from fedreuse.core.method import ClientHalf, ServerHalf
from fedreuse.core.model import Model, apply, combine, difference, from_groups, to_groups
from fedreuse.core.tensors import weighted_sum
from fedreuse.core.values import value
from fedreuse.server_steps import ServerStep, SgdStep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.message import Conversation, Replies
    from fedreuse.core.population import Population, Weighting

__all__ = ["AveragingServer", "AveragingState", "TrainingClient", "average", "update_of", "updates_of"]


@value
class AveragingState:
    """The model, and what the server step remembers."""

    model: Model
    step: Any = None


@dataclass(frozen=True)
class AveragingServer(ServerHalf[AveragingState]):
    """One exchange: everybody selected trains, whoever answers is averaged."""

    step: ServerStep = field(default_factory=SgdStep)
    weights: Weighting = "ratio"

    def init(self, model: Model, population: Population) -> AveragingState:
        """The state before the first round."""
        del population
        return AveragingState(model, self.step.init(model.weights))

    def model(self, state: AveragingState) -> Model:
        """What is evaluated and deployed."""
        return state.model

    def round(self, state: AveragingState, cohort: Cohort) -> Conversation[AveragingState]:
        """Ask everybody to train; average the replies that come."""
        request = Message("train", to_groups(state.model, "model"), answers=(update_of(state.model),))
        replies = yield dict.fromkeys(cohort.clients, request)
        events = tuple(Event(client, "fresh" if client in replies else "lost") for client in cohort.clients)
        if not replies:
            return state, Events(events)  # nobody answered: the model stands still
        updates = updates_of(replies, state.model)
        direction = average(updates, cohort, self.weights, state.model)
        move, step = self.step.step(direction.weights, state.step)
        model, num_kept = apply(state.model, replace(direction, weights=move))
        return AveragingState(model, step), Events(events, {"kept variances": num_kept})


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
    population, schema = cohort.population, like.schema
    ratio = population.ratio_weights(updates)
    mean = combine([(ratio[client], update) for client, update in updates.items()], schema)
    if weighting == "ratio":
        return mean
    unbiased = population.ht_weights(updates, len(cohort.clients))
    terms = [(unbiased[client], update.weights) for client, update in updates.items()]
    return replace(mean, weights=weighted_sum(terms, schema.weights))


def update_of(model: Model) -> Answer:
    """The answer of a client that trained: an update of all that the model is made of."""
    return Answer("update", {group: tensors.schema for group, tensors in to_groups(model, "update").items()})


def updates_of(replies: Replies, model: Model) -> dict[int, Model]:
    """The updates that replies carry, in client order."""
    return {client: from_groups(replies[client].groups, "update", model.schema) for client in sorted(replies)}
