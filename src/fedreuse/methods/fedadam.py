"""FedAdam (Reddi et al., 2021): the average update through Adam at the server.

m_t   = beta1 m_t-1 + (1 - beta1) D_t
v_t   = beta2 v_t-1 + (1 - beta2) D_t^2
w_t+1 = w_t + server_lr * m_t / (sqrt(v_t) + tau)             v starts at tau^2, no bias correction
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.core.method import methods
from fedreuse.methods.fedopt import FedOpt

if TYPE_CHECKING:
    from fedreuse.server_steps import ServerStep

__all__ = ["FedAdam"]


@methods.register("fedadam")
@dataclass(frozen=True)
class FedAdam(FedOpt):
    """FedAvg whose average update passes through Adam at the server."""

    def step(self) -> ServerStep:
        """The rule of the second moment is the whole difference between the three."""
        return self.adaptive("adam")
