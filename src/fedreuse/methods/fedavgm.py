"""FedAvgM (Hsu et al., 2019): the average update through momentum at the server.

b_t   = beta b_t-1 + D_t
w_t+1 = w_t + server_lr * b_t                    Nesterov: server_lr * (beta b_t + D_t)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.methods.averaging import AveragingServer, TrainingClient
from fedreuse.server_steps import Momentum

if TYPE_CHECKING:
    from fedreuse.core.method import BufferPolicy

__all__ = ["FedAvgM"]


@methods.register("fedavgm")
@dataclass(frozen=True)
class FedAvgM(MethodConfig):
    """FedAvg whose average update passes through momentum at the server."""

    server_lr: float = 0.3
    beta: float = 0.9
    nesterov: bool = False

    def __post_init__(self) -> None:
        """Momentum is below one."""
        require(self.server_lr >= 0, "method.server_lr must not be negative", self.server_lr)
        require(0 <= self.beta < 1, "method.beta must be in [0, 1)", self.beta)

    def halves(self, buffers: BufferPolicy) -> tuple[AveragingServer, TrainingClient]:
        """The averaging template; buffers and counters bypass the step."""
        del buffers
        return AveragingServer(Momentum(self.server_lr, self.beta, self.nesterov)), TrainingClient()
