"""EF21 (Richtarik et al., 2021; partial participation: Fatkhullin et al., 2021): clients correct estimates of updates.

g_i   <- g_i + C(delta_i - g_i)                             i in S; at client and server
w_t+1 = w_t + server_lr * sum_S omega_i g_i                 agg participants
w_t+1 = w_t + server_lr * sum_all alpha_j g_j               agg all: EF21-PP
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.codecs.codec import Codec, codecs
from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.registry import part
from fedreuse.links.ef21 import Ef21 as Ef21Link
from fedreuse.methods.averaging import AveragingServer, TrainingClient
from fedreuse.methods.estimates import estimates_server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.method import BufferPolicy, Link
    from fedreuse.methods.server_memory import MemoryServer

__all__ = ["Ef21"]


@methods.register("ef21")
@dataclass(frozen=True)
class Ef21(MethodConfig):
    """Average estimates of the clients' updates, which compressed differences keep up to date.

    `agg`: participants averages the estimates of the cohort, all those of every client.
    """

    agg: Literal["participants", "all"] = "participants"
    codec: Codec = part(codecs, {"name": "top_k", "ratio": 0.2})
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        """A step is not negative."""
        require(self.server_lr >= 0, "method.server_lr must not be negative", self.server_lr)

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The link that keeps the estimates."""
        return {"update": Ef21Link(self.codec)}

    def halves(self, buffers: BufferPolicy) -> tuple[AveragingServer | MemoryServer, TrainingClient]:
        """FedAvg's server or MIFA's; clients as in FedAvg."""
        del buffers
        return estimates_server(self.agg, self.server_lr), TrainingClient()
