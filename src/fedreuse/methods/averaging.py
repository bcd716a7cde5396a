"""The template of the averaging family: send the model, train, average the updates, move.

w_t+1 = w_t + server_lr * sum_S omega_i delta_i        omega_i = n_i / sum_S n_j
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.core.message import Event, Events, Message
from fedreuse.core.model import Model, apply, combine, difference, from_groups, to_groups
from fedreuse.core.values import value
from fedreuse.corrections import proximal

if TYPE_CHECKING:
    from fedreuse.core.bench import Bench
    from fedreuse.core.cohort import Cohort
    from fedreuse.core.message import Conversation, Replies
    from fedreuse.core.population import Population

__all__ = ["AveragingServer", "AveragingState", "TrainingClient", "updates_of"]


@value
class AveragingState:
    """The model is all there is."""

    model: Model


@dataclass(frozen=True)
class AveragingServer:
    """One exchange: everybody selected trains, whoever answers is averaged."""

    server_lr: float = 1.0

    def init(self, model: Model, population: Population) -> AveragingState:
        """The state before the first round."""
        del population
        return AveragingState(model)

    def model(self, state: AveragingState) -> Model:
        """What is evaluated and deployed."""
        return state.model

    def round(self, state: AveragingState, cohort: Cohort) -> Conversation[AveragingState]:
        """Ask everybody to train; average the replies that come."""
        request = Message("train", to_groups(state.model, "model"))
        replies = yield dict.fromkeys(cohort.clients, request)
        events = tuple(Event(client, "fresh" if client in replies else "lost") for client in cohort.clients)
        if not replies:
            return state, Events(events)  # nobody answered: the model stands still
        updates = updates_of(replies, state.model)
        weights = cohort.population.ratio_weights(updates)
        direction = combine([(weights[client], update) for client, update in updates.items()], state.model.schema)
        model, num_kept = apply(state.model, direction, self.server_lr)
        return AveragingState(model), Events(events, {"kept variances": num_kept})


@dataclass(frozen=True)
class TrainingClient:
    """Trains from the received model, with a pull of strength `mu` back to it; sends the update, remembers nothing."""

    mu: float = 0.0

    def init(self) -> None:
        """Nothing to remember."""

    def answer(self, request: Message, state: None, bench: Bench) -> tuple[Message, None]:
        """Train and reply with trained minus received."""
        received = from_groups(request.groups, "model", bench.schema)
        trained = bench.train(received, proximal(received.weights, self.mu))
        return Message("update", to_groups(difference(trained.model, received), "update")), state

    def settle(self, state: None, delivered: Message) -> None:
        """Nothing depends on what arrived."""


def updates_of(replies: Replies, model: Model) -> dict[int, Model]:
    """The updates that replies carry, in client order."""
    return {client: from_groups(replies[client].groups, "update", model.schema) for client in sorted(replies)}
