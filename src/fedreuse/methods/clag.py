"""CLAG (Richtarik et al., 2022): EF21 with lazy clients; the codec `dense` makes it LAG, zeta 0 EF21.

h_i   <- h_i + C(x_i - h_i)   if |x_i - h_i|^2 > zeta |x_i - y_i|^2, else silence        i in S; y_i <- x_i
w_t+1 = w_t + server_lr * sum_S omega_i h_i                 agg participants
w_t+1 = w_t + server_lr * sum_all alpha_j h_j               agg all
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.codecs.codec import Codec, codecs
from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.registry import part
from fedreuse.links.clag import Clag as ClagLink
from fedreuse.methods.averaging import AveragingServer, TrainingClient
from fedreuse.methods.estimates import estimates_server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.method import BufferPolicy, Link
    from fedreuse.methods.server_memory import MemoryServer

__all__ = ["Clag"]


@methods.register("clag")
@dataclass(frozen=True)
class Clag(MethodConfig):
    """Average estimates that clients correct only when they are off by more than zeta times the update's movement.

    `agg`: participants averages the estimates of the cohort, all those of every client. `max_lag`: a client sends at
    least in every so many participations; None never forces it.
    """

    zeta: float = 1.0
    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    max_lag: int | None = 10
    agg: Literal["participants", "all"] = "participants"
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        """A threshold and a step are not negative, a lag counts participations."""
        require(self.zeta >= 0, "method.zeta must not be negative", self.zeta)
        require(self.max_lag is None or self.max_lag >= 1, "method.max_lag must be at least 1 (or null)", self.max_lag)
        require(self.server_lr >= 0, "method.server_lr must not be negative", self.server_lr)

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The link that keeps the estimates, and its silence."""
        return {"update": ClagLink(self.zeta, self.codec, self.max_lag)}

    def halves(self, buffers: BufferPolicy) -> tuple[AveragingServer | MemoryServer, TrainingClient]:
        """FedAvg's server or MIFA's; clients as in FedAvg."""
        del buffers
        return estimates_server(self.agg, self.server_lr), TrainingClient()
