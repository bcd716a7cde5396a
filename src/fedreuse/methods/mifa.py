"""MIFA (Gu et al., 2021): every round applies the mean of every client's last update.

h_i   <- d_i for i in S
w_t+1 = w_t + server_lr * sum_all alpha_j h_j
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.registry import optional_part
from fedreuse.core.tensors import Tensors, scale
from fedreuse.methods.averaging import TrainingClient
from fedreuse.methods.server_memory import MemoryServer, MemoryState
from fedreuse.methods.server_steps.server_step import ServerStep, server_steps
from fedreuse.methods.server_steps.sgd import chosen_step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.cohort import Cohort
    from fedreuse.core.method import BufferPolicy

__all__ = ["Mifa", "Remembered"]


@methods.register("mifa", refuses={"aggregate": "it maintains a running mean and never has all last updates at once"})
@dataclass(frozen=True)
class Mifa(MethodConfig):
    """MIFA: every round applies the mean of all clients' last updates.

    Args:
        start: `zero`: clients not yet seen count as zero; `full`: all clients take part in the first round;
            `seen`: divide by the examples of the clients seen so far.
        server_lr: Server learning rate, the factor on the aggregated update; at least 0.
        step: Server step; null is `sgd` with `server_lr`.

    Example: `method: {name: mifa, start: full}`.
    """

    start: Literal["zero", "full", "seen"] = "zero"
    server_lr: float = 1.0
    step: ServerStep | None = optional_part(server_steps)

    def __post_init__(self) -> None:
        """Check the ranges."""
        chosen_step(self.step, self.server_lr, mixes="its direction also contains updates of earlier rounds")

    def halves(self, buffers: BufferPolicy) -> tuple[MemoryServer, TrainingClient]:
        """Return a server half with memory and FedAvg's client half; buffers are averaged over the fresh clients."""
        del buffers
        combine = Remembered(divides_by_seen=self.start == "seen")
        step = chosen_step(self.step, self.server_lr)
        return MemoryServer(combine, step, starts_full=self.start == "full"), TrainingClient()


@dataclass(frozen=True)
class Remembered:
    """The mean of the memory, with this round's updates."""

    divides_by_seen: bool = False

    def __call__(
        self, fresh: Mapping[int, Tensors], before: MemoryState, after: MemoryState, cohort: Cohort
    ) -> Tensors:
        """Return sum_all alpha_j h_j, rescaled to this round's learning rate."""
        del fresh, before
        seen = sum(cohort.population.share(client) for client in after.memory) if self.divides_by_seen else 1.0
        factor = cohort.lr_factor / seen if cohort.lr_factor else 0.0
        return after.mean if factor == 1.0 else scale(after.mean, factor)
