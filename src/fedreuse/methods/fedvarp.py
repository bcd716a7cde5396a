"""FedVARP (Jhunjhunwala et al., 2022): SAGA over clients at the server.

D_t   = sum_S w_i (d_i - h_i) + sum_all alpha_j h_j                       h before this round
w_t+1 = w_t + server_lr * D_t                                             h_i <- d_i for i in S
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.methods.averaging import TrainingClient
from fedreuse.methods.fedstale import Stale
from fedreuse.methods.server_memory import MemoryServer
from fedreuse.server_steps import SgdStep

if TYPE_CHECKING:
    from fedreuse.core.method import BufferPolicy

__all__ = ["FedVarp"]


@methods.register("fedvarp")
@dataclass(frozen=True)
class FedVarp(MethodConfig):
    """Fresh updates corrected by what absent clients last sent, as SAGA does with gradients."""

    server_lr: float = 1.0
    weights: Literal["ratio", "ht"] = "ratio"

    def __post_init__(self) -> None:
        """A step is not negative."""
        require(self.server_lr >= 0, "method.server_lr must not be negative", self.server_lr)

    def halves(self, buffers: BufferPolicy) -> tuple[MemoryServer, TrainingClient]:
        """FedStale with beta 1."""
        del buffers
        return MemoryServer(Stale(1.0, self.weights), SgdStep(self.server_lr)), TrainingClient()
