"""STC on the uplink (Sattler et al., 2020): FedAvg with sparse ternary updates and error accumulation.

sent_i = ternary(A_i + delta_i)
A_i    <- A_i + delta_i - sent_i                              waits at the client
w_t+1  = w_t + server_lr * sum_S omega_i sent_i
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.codecs.ternary import Ternary
from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.links.error_feedback import ErrorFeedback
from fedreuse.methods.averaging import AveragingServer, TrainingClient
from fedreuse.server_steps import SgdStep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.method import BufferPolicy, Link

__all__ = ["StcUp"]


@methods.register("stc_up")
@dataclass(frozen=True)
class StcUp(MethodConfig):
    """FedAvg with sparse ternary updates; what is dropped waits at the client. The model travels dense."""

    ratio: float = 0.2
    server_lr: float = 1.0
    weights: Literal["ratio", "ht"] = "ratio"

    def __post_init__(self) -> None:
        """The codec checks its own ratio."""
        require(self.server_lr >= 0, "method.server_lr must not be negative", self.server_lr)
        Ternary(self.ratio)

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """Ternary updates with error feedback, without which they do not converge."""
        return {"update": ErrorFeedback(Ternary(self.ratio))}

    def halves(self, buffers: BufferPolicy) -> tuple[AveragingServer, TrainingClient]:
        """FedAvg's."""
        del buffers
        return AveragingServer(SgdStep(self.server_lr), self.weights), TrainingClient()
