"""FedPAQ (Reisizadeh et al., 2020): FedAvg whose updates are quantised at random, right on average.

w_t+1 = w_t + server_lr * sum_S omega_i Q(delta_i)           Q: qsgd with max-norm buckets
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.codecs.qsgd import Qsgd
from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.links.plain import Plain
from fedreuse.methods.averaging import AveragingServer, TrainingClient
from fedreuse.server_steps import SgdStep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.method import BufferPolicy, Link

__all__ = ["FedPaq"]


@methods.register("fedpaq")
@dataclass(frozen=True)
class FedPaq(MethodConfig):
    """FedAvg with updates rounded at random to a few levels per bucket: unbiased, no memory at either end."""

    bits: int = 4
    bucket: int = 512
    server_lr: float = 1.0
    weights: Literal["ratio", "ht"] = "ratio"

    def __post_init__(self) -> None:
        """The quantiser checks its own numbers."""
        require(self.server_lr >= 0, "method.server_lr must not be negative", self.server_lr)
        Qsgd(self.bits, self.bucket)

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The quantiser, without memory."""
        return {"update": Plain(Qsgd(self.bits, self.bucket))}

    def halves(self, buffers: BufferPolicy) -> tuple[AveragingServer, TrainingClient]:
        """FedAvg's."""
        del buffers
        return AveragingServer(SgdStep(self.server_lr), self.weights), TrainingClient()
