"""Server halves with memory: the last update of every client, and a running mean of them.

h_i    the last update of client i (0 before the first), divided by its round's learning rate relative to the first
       round's; unchanged in a round whose rate is zero
mean   sum over all clients of alpha_i h_i, alpha_i = n_i / n: changed by alpha_i (d_i - h_i) when client i answers,
       and recomputed every `RESUM_EVERY` rounds, so that rounding errors do not accumulate
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
"""Rounds between two full sums over the memory."""


@value
class MemoryState:
    """The model, the state of the server step, the last update per client, and their weighted mean."""

    model: Model
    step: Any
    memory: IntMap[Tensors]
    mean: Tensors


class Combine(Protocol):
    """A function from fresh updates and memory to a direction, in units of this round's learning rate."""

    def __call__(
        self, fresh: Mapping[int, Tensors], before: MemoryState, after: MemoryState, cohort: Cohort
    ) -> Tensors:
        """Return the direction of the weights."""
        ...


@dataclass(frozen=True)
class MemoryServer(ServerHalf[MemoryState]):
    """The server half: one exchange as in FedAvg; `combine` computes the direction from replies and memory."""

    combine: Combine
    step: ServerStep = field(default_factory=SgdStep)
    starts_full: bool = False

    def init(self, model: Model, population: Population) -> MemoryState:
        """Return the state before the first round, with an empty memory."""
        del population
        return MemoryState(model, self.step.init(model.weights), IntMap(), zeros(model.weights.schema))

    def model(self, state: MemoryState) -> Model:
        """Return the model that is evaluated and deployed."""
        return evaluated(self.step, state.model, state.step)

    def broadcast(self, state: MemoryState) -> Model:
        """Return the model that clients receive."""
        return state.model

    def round(self, state: MemoryState, cohort: Cohort) -> Conversation[MemoryState]:
        """Let the cohort train (all clients in the first round of a full start), remember, combine, step."""
        is_start = self.starts_full and not state.memory
        asked = range(len(cohort.population)) if is_start else cohort.clients
        request = Message("train", to_groups(state.model, "model"), answers=(update_of(state.model),))
        replies = yield dict.fromkeys(asked, request)
        events = tuple(Event(client, "fresh" if client in replies else "lost") for client in cohort.clients)
        if not replies:
            return state, Events(events)  # no reply arrived: the model is unchanged
        updates = updates_of(replies, state.model)
        fresh = {client: update.weights for client, update in updates.items()}
        after = remember(state, fresh, cohort)
        # Running statistics and counters are averaged over the fresh clients only; memory holds weights alone.
        mean = Mean().aggregate(fresh_contributions(updates, cohort), cohort, state.model.schema)
        direction = replace(mean.direction, weights=self.combine(fresh, state, after, cohort))
        model, step, num_kept = advance(self.step, state.model, direction, state.step, mean.statistics)
        return replace(after, model=model, step=step), Events(events, {"kept variances": num_kept})


def remember(state: MemoryState, fresh: Mapping[int, Tensors], cohort: Cohort) -> MemoryState:
    """Return the state with this round's updates in memory and mean."""
    if not cohort.lr_factor:
        return state  # with a rate of zero no client moved: its update says nothing about its direction
    share = cohort.population.share
    # Entries are stored per unit of learning rate, so that updates of rounds with different rates can be mixed.
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
