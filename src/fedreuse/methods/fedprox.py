"""FedProx (Li et al., 2020): FedAvg whose local objective is F_i(w) + mu/2 |w - w_t|^2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.needs import Needs
from fedreuse.methods.averaging import AveragingServer, TrainingClient
from fedreuse.server_steps import SgdStep

if TYPE_CHECKING:
    from fedreuse.core.method import BufferPolicy

__all__ = ["FedProx"]


@methods.register("fedprox")
@dataclass(frozen=True)
class FedProx(MethodConfig):
    """FedAvg with a pull of strength mu towards the received model in every local step."""

    mu: float = 5e-4
    server_lr: float = 1.0
    weights: Literal["ratio", "ht"] = "ratio"

    def __post_init__(self) -> None:
        """A pull pulls; a step is not negative."""
        require(self.mu >= 0, "method.mu must not be negative", self.mu)
        require(self.server_lr >= 0, "method.server_lr must not be negative", self.server_lr)

    @property
    def needs(self) -> Needs:
        """The pull enters every step."""
        return Needs(corrections=self.mu > 0)

    def halves(self, buffers: BufferPolicy) -> tuple[AveragingServer, TrainingClient]:
        """FedAvg's server, a client that pulls."""
        del buffers
        return AveragingServer(SgdStep(self.server_lr), self.weights), TrainingClient(self.mu)
