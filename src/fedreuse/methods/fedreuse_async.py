"""DG-FedReuse without a barrier: clients that are still at work are covered by their cached, decayed updates.

x_i   = update in the buffer, a_i steps old; cached
x_j   = last cached update of a client at work, a_j steps old, if a_j < max_age
w_t+1 = w_t + server_lr * sum over both of omega_i rho^a_i x_i          omega_i = n_i / sum over both of n_j

The age of an update is the number of steps since the model that it was trained from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import require
from fedreuse.core.int_map import IntMap
from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.model import Model
from fedreuse.core.needs import Needs
from fedreuse.core.registry import optional_part
from fedreuse.core.tensors import Tensors, zeros
from fedreuse.core.values import value
from fedreuse.methods.aggregators.aggregator import Contribution
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.methods.averaging import TrainingClient
from fedreuse.methods.buffered import AsynchronousServer, check_buffer
from fedreuse.methods.server_steps.server_step import ServerStep, advance, server_steps
from fedreuse.methods.server_steps.sgd import SgdStep, chosen_step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.method import BufferPolicy
    from fedreuse.core.population import Population
    from fedreuse.methods.buffered import Arrival

__all__ = ["FedReuseAsync", "FedReuseAsyncServer", "FedReuseAsyncState"]


@methods.register("fedreuse_async", refuses={"aggregate": "its weights decay with the age of each update"})
@dataclass(frozen=True)
class FedReuseAsync(MethodConfig):
    """Asynchronous DG-FedReuse: clients at work are covered by their cached updates, decayed by age.

    `rounds.cohort` is the number of clients that train at the same time; a round is one step. Simulations need
    `devices`.

    Args:
        buffer: Replies of one step, at least 1 and at most `rounds.cohort`.
        rho: Factor on an update for each step of its age, in [0, 1].
        max_age: Age in steps from which a cached update is dropped, at least 1.
        mu: Strength of the proximal term, which pulls every local step towards the received model; at least 0.
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        step: Server step; null is `sgd` with `server_lr`.

    Example: `method: {name: fedreuse_async, buffer: 10, rho: 0.8}`.
    """

    buffer: int = 10
    rho: float = 0.7279635
    max_age: int = 10
    mu: float = 3.4156e-4
    server_lr: float = 1.0
    step: ServerStep | None = optional_part(server_steps)

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_buffer(self.buffer)
        require(0 <= self.rho <= 1, "method.rho must be in [0, 1]", self.rho)
        require(self.max_age >= 1, "method.max_age must be at least 1", self.max_age)
        require(self.mu >= 0, "method.mu must not be negative", self.mu)
        chosen_step(self.step, self.server_lr, mixes="its direction also contains updates of earlier rounds")

    @property
    def needs(self) -> Needs:
        """Simulated time, and corrections of local steps for the proximal term."""
        return Needs(corrections=self.mu > 0, buffer=self.buffer)

    def halves(self, buffers: BufferPolicy) -> tuple[FedReuseAsyncServer, TrainingClient]:
        """Return both halves; buffers and counters are averaged over the replies of a step, never reused."""
        del buffers
        step = chosen_step(self.step, self.server_lr)
        return FedReuseAsyncServer(self.buffer, self.rho, self.max_age, step), TrainingClient(self.mu)


@value
class FedReuseAsyncState:
    """The model, the step's state, the cached updates of weights, and the rounds whose models they started from."""

    model: Model
    step: Any
    cache: IntMap[Tensors] = field(default_factory=IntMap)
    rounds: IntMap[int] = field(default_factory=IntMap)


@dataclass(frozen=True)
class FedReuseAsyncServer(AsynchronousServer[FedReuseAsyncState]):
    """The server half: replies and covered clients, decayed by age."""

    buffer: int
    rho: float = 0.7279635
    max_age: int = 10
    step: ServerStep = field(default_factory=SgdStep)

    def init(self, model: Model, population: Population) -> FedReuseAsyncState:
        """Return the state before the first round, with an empty cache."""
        del population
        return FedReuseAsyncState(model, self.step.init(model.weights))

    def merge(
        self, state: FedReuseAsyncState, arrived: Mapping[int, Arrival], cohort: Cohort
    ) -> tuple[FedReuseAsyncState, Mapping[str, int], dict[int, str]]:
        """Aggregate the replies and the caches of the clients at work, step, and cache the replies."""
        now, schema = cohort.round_number, state.model.schema
        covered = [client for client in cohort.busy if client not in arrived and client in state.cache]
        updates = {client: one.update for client, one in arrived.items()}
        ages = {client: one.age for client, one in arrived.items()}
        for client in covered:
            updates[client] = Model(state.cache[client], zeros(schema.buffers), zeros(schema.counters))
            ages[client] = now - state.rounds[client]
        shares = cohort.population.ratio_weights(sorted(updates))
        statistics = cohort.population.ratio_weights(sorted(arrived))
        contributions = {
            client: Contribution(updates[client], share, self.rho ** ages[client], statistics.get(client), ages[client])
            for client, share in shares.items()
        }
        made = Mean().aggregate(contributions, cohort, schema)
        model, step, num_kept = advance(self.step, state.model, made.direction, state.step, made.statistics)
        cache = state.cache.with_({client: one.update.weights for client, one in arrived.items()})
        rounds = state.rounds.with_({client: now - one.age for client, one in arrived.items()})
        expired = [client for client, trained in rounds.items() if now + 1 - trained >= self.max_age]
        state = FedReuseAsyncState(model, step, cache.without(expired), rounds.without(expired))
        return state, {"kept variances": num_kept, "covered": len(covered)}, {}
