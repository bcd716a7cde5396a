"""LBGM (Azam et al., 2022) as a method: FedAvg whose clients send updates through the link `lbgm`.

x_i   = delta_i, or rho_i times the last delta_i sent in full, tensor by tensor        (see links/lbgm.py)
w_t+1 = w_t + server_lr * sum_S omega_i x_i
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Literal

from fedreuse.codecs.codec import Codec, codecs, require_contraction
from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.registry import part
from fedreuse.links.lbgm import Lbgm as LbgmLink
from fedreuse.methods.averaging import AveragingServer, TrainingClient
from fedreuse.server_steps import SgdStep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.method import BufferPolicy, Link

__all__ = ["Lbgm"]


@methods.register("lbgm")
@dataclass(frozen=True)
class Lbgm(MethodConfig):
    """FedAvg; a tensor whose update has hardly turned since it was last sent travels as one number."""

    threshold: float = 0.2
    granularity: Literal["tensor", "model"] = "tensor"
    codec: Codec = part(codecs, "dense")
    residual: bool = False
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        """A threshold is a number, a step is not negative."""
        require(not isnan(self.threshold), "method.threshold must be a number", self.threshold)
        require(self.server_lr >= 0, "method.server_lr must not be negative", self.server_lr)
        if self.residual:
            require_contraction(self.codec, "method")

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The link that makes it LBGM."""
        return {"update": LbgmLink(self.threshold, self.granularity, self.codec, self.residual)}

    def halves(self, buffers: BufferPolicy) -> tuple[AveragingServer, TrainingClient]:
        """FedAvg's own."""
        del buffers
        return AveragingServer(SgdStep(self.server_lr)), TrainingClient()
