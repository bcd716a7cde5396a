"""CA2FL (Wang et al., 2024): buffered asynchronous averaging, calibrated by the cached last update of every client.

h_i   the last update of client i (0 before the first); h = (1 / N) sum over all clients of h_i
v_t   = h + (1 / K) sum over the buffer of (x_i - h_i)
w_t+1 = w_t + server_lr * v_t                            then h_i <- x_i for the clients of the buffer
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.int_map import IntMap
from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.needs import Needs
from fedreuse.core.population import Population
from fedreuse.core.registry import optional_part
from fedreuse.core.tensors import zeros
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.methods.averaging import TrainingClient
from fedreuse.methods.buffered import AsynchronousServer, check_buffer, contributions_of
from fedreuse.methods.fedstale import Stale
from fedreuse.methods.server_memory import MemoryState, remember
from fedreuse.methods.server_steps.server_step import ServerStep, advance, server_steps
from fedreuse.methods.server_steps.sgd import SgdStep, chosen_step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.method import BufferPolicy
    from fedreuse.core.model import Model
    from fedreuse.methods.buffered import Arrival

__all__ = ["Ca2fl", "Ca2flServer"]


@methods.register("ca2fl", refuses={"aggregate": "its direction is a sum of corrections to earlier updates"})
@dataclass(frozen=True)
class Ca2fl(MethodConfig):
    """CA2FL: FedBuff whose buffer corrects the mean of every client's last update.

    `rounds.cohort` is the number of clients that train at the same time; a round is one step. Simulations need
    `devices`.

    Args:
        buffer: Number K of replies per step, at least 1 and at most `rounds.cohort`.
        server_lr: Server learning rate, the factor on the direction; at least 0.
        step: Server step; null is `sgd` with `server_lr`.

    Example: `method: {name: ca2fl, buffer: 10}`.
    """

    buffer: int = 10
    server_lr: float = 1.0
    step: ServerStep | None = optional_part(server_steps)

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_buffer(self.buffer)
        chosen_step(self.step, self.server_lr, mixes="its direction also contains updates of earlier rounds")

    @property
    def needs(self) -> Needs:
        """Simulated time."""
        return Needs(buffer=self.buffer)

    def halves(self, buffers: BufferPolicy) -> tuple[Ca2flServer, TrainingClient]:
        """Return both halves; buffers are averaged over the replies of a step."""
        del buffers
        return Ca2flServer(self.buffer, chosen_step(self.step, self.server_lr)), TrainingClient()


@dataclass(frozen=True)
class Ca2flServer(AsynchronousServer[MemoryState]):
    """The server half: the memory and direction of FedVARP, with equal weights, over the replies of a buffer."""

    buffer: int
    step: ServerStep = field(default_factory=SgdStep)

    def init(self, model: Model, population: Population) -> MemoryState:
        """Return the state before the first round, with an empty memory."""
        del population
        return MemoryState(model, self.step.init(model.weights), IntMap(), zeros(model.weights.schema))

    def merge(
        self, state: MemoryState, arrived: Mapping[int, Arrival], cohort: Cohort
    ) -> tuple[MemoryState, Mapping[str, int], dict[int, str]]:
        """Calibrate, remember and step."""
        fresh = {client: arrived[client].update.weights for client in sorted(arrived)}
        # with equal numbers of examples the weights of FedVARP are 1 / K and 1 / N
        equal = replace(cohort, population=Population(np.ones(len(cohort.population), np.int64)))
        after = remember(state, fresh, equal)
        mean = Mean().aggregate(contributions_of(arrived, 0.0), cohort, state.model.schema)
        direction = replace(mean.direction, weights=Stale(1.0, "ratio")(fresh, state, after, equal))
        model, step, num_kept = advance(self.step, state.model, direction, state.step, mean.statistics)
        return replace(after, model=model, step=step), {"kept variances": num_kept}, {}
