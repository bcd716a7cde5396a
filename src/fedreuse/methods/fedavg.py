"""FedAvg (McMahan et al., 2017): average the updates of the selected clients, weighted by their examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.methods.averaging import AveragingServer, TrainingClient
from fedreuse.server_steps import SgdStep

if TYPE_CHECKING:
    from fedreuse.core.method import BufferPolicy

__all__ = ["FedAvg"]


@methods.register("fedavg")
@dataclass(frozen=True)
class FedAvg(MethodConfig):
    """Average the selected clients' updates, weighted by their examples, and add them to the model."""

    server_lr: float = 1.0
    weights: Literal["ratio", "ht"] = "ratio"

    def __post_init__(self) -> None:
        """A step is not negative."""
        require(self.server_lr >= 0, "method.server_lr must not be negative", self.server_lr)

    def halves(self, buffers: BufferPolicy) -> tuple[AveragingServer, TrainingClient]:
        """The template as it is; every client is fresh, so both buffer policies are the same arithmetic."""
        del buffers
        return AveragingServer(SgdStep(self.server_lr), self.weights), TrainingClient()
