"""FedStale (Rodio and Neglia, 2024): fresh updates plus a share beta of the last updates of absent clients.

    D_t   = sum_S w_i (d_i - beta h_i) + beta * sum_all alpha_j h_j           h before this round
    w_t+1 = w_t + server_lr * D_t                                             h_i <- d_i for i in S

beta 0 is FedAvg, beta 1 is FedVARP; w_i are ratio weights, or (N / m) alpha_i, which is unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.registry import optional_part
from fedreuse.core.tensors import Tensors, weighted_sum
from fedreuse.methods.averaging import TrainingClient
from fedreuse.methods.server_memory import MemoryServer, MemoryState
from fedreuse.methods.server_steps.server_step import ServerStep, server_steps
from fedreuse.methods.server_steps.sgd import chosen_step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.method import BufferPolicy
    from fedreuse.core.population import Weighting

__all__ = ["FedStale", "Stale"]


@methods.register("fedstale", refuses={"aggregate": "its direction is a sum of corrections to earlier updates"})
@dataclass(frozen=True)
class FedStale(MethodConfig):
    """FedStale: fresh updates plus a share beta of the last updates of absent clients.

    Args:
        beta: Weight of the last updates of absent clients, in [0, 1]; 0 is FedAvg, 1 is FedVARP.
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        weighting: `ratio`: by examples, normalised over the replies; `ht` (Horvitz-Thompson): unbiased for cohorts
            that are drawn uniformly.
        step: Server step; null is `sgd` with `server_lr`.

    Example: `method: {name: fedstale, beta: 0.5}`.
    """

    beta: float = 0.5
    server_lr: float = 1.0
    weighting: Literal["ratio", "ht"] = "ratio"
    step: ServerStep | None = optional_part(server_steps)

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 <= self.beta <= 1, "method.beta must be in [0, 1]", self.beta)
        chosen_step(self.step, self.server_lr, mixes="its direction also contains updates of earlier rounds")

    def halves(self, buffers: BufferPolicy) -> tuple[MemoryServer, TrainingClient]:
        """Return a server half with memory and FedAvg's client half; buffers are averaged over the fresh clients."""
        del buffers
        return MemoryServer(Stale(self.beta, self.weighting), chosen_step(self.step, self.server_lr)), TrainingClient()


@dataclass(frozen=True)
class Stale:
    """The direction of FedStale; beta multiplies both sums of history, since otherwise it would be biased."""

    beta: float
    weighting: Weighting

    def __call__(
        self, fresh: Mapping[int, Tensors], before: MemoryState, after: MemoryState, cohort: Cohort
    ) -> Tensors:
        """Return sum_S w_i (d_i - beta h_i) + beta * mean, with h and mean from before this round."""
        del after
        weights = cohort.population.weights(self.weighting, fresh, len(cohort.clients))
        history = self.beta * cohort.lr_factor
        terms = [(weights[client], update) for client, update in fresh.items()]
        terms += [(-history * weights[client], before.memory[client]) for client in fresh if client in before.memory]
        return weighted_sum([*terms, (history, before.mean)], before.mean.schema)
