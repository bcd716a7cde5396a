"""Fed-EF (Li and Li, 2023): FedAvg on compressed updates, with what the codec drops added to the client's next update.

c_i   = C(delta_i + decay e_i)                   sent
e_i   <- delta_i + decay e_i - decoded(c_i)      waits while client i is not selected
w_t+1 = w_t + server_lr * sum_S omega_i decoded(c_i)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.codecs.codec import Codec, codecs
from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.registry import part
from fedreuse.links.error_feedback import ErrorFeedback
from fedreuse.methods.averaging import AveragingServer, TrainingClient
from fedreuse.server_steps import SgdStep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.method import BufferPolicy, Link

__all__ = ["FedEf"]


@methods.register("fed_ef")
@dataclass(frozen=True)
class FedEf(MethodConfig):
    """FedAvg on compressed updates; what the codec drops is added to the client's next update."""

    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    decay: float = 1.0
    server_lr: float = 1.0
    weights: Literal["ratio", "ht"] = "ratio"

    def __post_init__(self) -> None:
        """A residual may fade, not grow; a step is not negative."""
        require(0 < self.decay <= 1, "method.decay must be in (0, 1]", self.decay)
        require(self.server_lr >= 0, "method.server_lr must not be negative", self.server_lr)

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """Error feedback around the codec."""
        return {"update": ErrorFeedback(self.codec, self.decay)}

    def halves(self, buffers: BufferPolicy) -> tuple[AveragingServer, TrainingClient]:
        """FedAvg's; the link does the rest."""
        del buffers
        return AveragingServer(SgdStep(self.server_lr), self.weights), TrainingClient()
