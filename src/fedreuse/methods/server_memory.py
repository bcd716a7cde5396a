"""The template of server memory: the last update of every client, and their mean kept up to date.

h_i    the last update of client i (0 before the first), divided by the learning rate it was made with, relative to
       the first round's; a round whose rate is zero leaves it
mean   sum over all clients of alpha_i h_i, alpha_i = n_i / n: moved by alpha_i (d_i - h_i) when client i answers,
       and summed afresh every `RESUM_EVERY` rounds, so that rounding does not pile up
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from fedreuse.core.int_map import IntMap
from fedreuse.core.message import Event, Events, Message
from fedreuse.core.method import ServerHalf
from fedreuse.core.model import Model, to_groups
from fedreuse.core.tensors import Tensors, scale, weighted_sum, zeros
from fedreuse.core.values import value
from fedreuse.methods.aggregators.aggregator import fresh_contributions
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.methods.averaging import update_of, updates_of
from fedreuse.methods.server_steps.server_step import ServerStep, advance, evaluated
from fedreuse.methods.server_steps.sgd import SgdStep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.message import Conversation
    from fedreuse.core.population import Population

__all__ = ["RESUM_EVERY", "Combine", "MemoryServer", "MemoryState"]

RESUM_EVERY = 50


@value(former=("fedreuse.methods.memory.MemoryState",))
class MemoryState:
    """The model, the step's state, the last update per client, and their weighted mean."""

    model: Model
    step: Any
    memory: IntMap[Tensors]
    mean: Tensors


class Combine(Protocol):
    """How fresh updates and memory make a direction; everything is in units of this round's learning rate."""

    def __call__(
        self, fresh: Mapping[int, Tensors], before: MemoryState, after: MemoryState, cohort: Cohort
    ) -> Tensors:
        """The direction of the weights."""
        ...


@dataclass(frozen=True)
class MemoryServer(ServerHalf[MemoryState]):
    """One exchange as in FedAvg; the direction is made by `combine` from what came and what is remembered."""

    combine: Combine
    step: ServerStep = field(default_factory=SgdStep)
    starts_full: bool = False

    def init(self, model: Model, population: Population) -> MemoryState:
        """The state before the first round: no updates are remembered."""
        del population
        return MemoryState(model, self.step.init(model.weights), IntMap(), zeros(model.weights.schema))

    def model(self, state: MemoryState) -> Model:
        """What is evaluated and deployed."""
        return evaluated(self.step, state.model, state.step)

    def broadcast(self, state: MemoryState) -> Model:
        """What clients receive."""
        return state.model

    def round(self, state: MemoryState, cohort: Cohort) -> Conversation[MemoryState]:
        """Ask the cohort (or everybody, as long as a full start remembers nobody), remember, combine, move."""
        is_start = self.starts_full and not state.memory
        asked = range(len(cohort.population)) if is_start else cohort.clients
        request = Message("train", to_groups(state.model, "model"), answers=(update_of(state.model),))
        replies = yield dict.fromkeys(asked, request)
        events = tuple(Event(client, "fresh" if client in replies else "lost") for client in cohort.clients)
        if not replies:
            return state, Events(events)  # nobody answered: the model stands still
        updates = updates_of(replies, state.model)
        fresh = {client: update.weights for client, update in updates.items()}
        after = remember(state, fresh, cohort)
        mean = Mean().aggregate(fresh_contributions(updates, cohort), cohort, state.model.schema)
        direction = replace(mean.direction, weights=self.combine(fresh, state, after, cohort))
        model, step, num_kept = advance(self.step, state.model, direction, state.step, mean.statistics)
        return replace(after, model=model, step=step), Events(events, {"kept variances": num_kept})


def remember(state: MemoryState, fresh: Mapping[int, Tensors], cohort: Cohort) -> MemoryState:
    """The memory with this round's updates in it, and its mean."""
    if not cohort.lr_factor:
        return state  # nobody moved, which says nothing about where they would
    share = cohort.population.share
    entries = {client: _per_rate(update, 1 / cohort.lr_factor) for client, update in fresh.items()}
    memory = state.memory.with_(entries)
    schema = state.mean.schema
    if cohort.round_number % RESUM_EVERY == 0:
        mean = weighted_sum([(share(client), entry) for client, entry in memory.items()], schema)
    else:
        gone = [(-share(client), state.memory[client]) for client in entries if client in state.memory]
        come = [(share(client), entry) for client, entry in entries.items()]
        mean = weighted_sum([(1.0, state.mean), *come, *gone], schema)
    return replace(state, memory=memory, mean=mean)


def _per_rate(update: Tensors, factor: float) -> Tensors:
    return update if factor == 1.0 else scale(update, factor)
