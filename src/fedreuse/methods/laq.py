"""LAQ (Sun et al., 2019): lazy clients that send quantised innovations of a few bits per coordinate.

    Q_i   <- Q_i + quantised(delta_i - Q_i)   unless its size is within the model's movement and the quantisation errors
    w_t+1 = w_t + server_lr * sum_S omega_i Q_i                 agg participants
    w_t+1 = w_t + server_lr * sum_all alpha_j Q_j               agg all, as in the paper

The paper steps by a sum, theta <- theta - a sum_m Q_m, and compares gradients with moves / (a M)^2. In updates,
delta_m = -(a M / server_lr) g_m, that is moves / server_lr^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.links.laq import Laq as LaqLink
from fedreuse.methods.averaging import TrainingClient
from fedreuse.methods.estimates import estimates_server
from fedreuse.methods.movement import MovementServer
from fedreuse.wire.modes.innovation import MAX_BITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.method import BufferPolicy, Link

__all__ = ["Laq"]


@methods.register("laq")
@dataclass(frozen=True)
class Laq(MethodConfig):
    """Average estimates that clients correct by quantised innovations, and not at all while these are small.

    `depth` and `xi`: how many of the model's last moves count, and their weight in all. `max_lag`: a client sends at
    least in every so many participations; None never forces it. `agg`: participants averages the estimates of the
    cohort, all those of every client.
    """

    bits: int = 4
    depth: int = 10
    xi: float = 0.8
    max_lag: int | None = 100
    agg: Literal["participants", "all"] = "participants"
    server_lr: float = 1.0

    def __post_init__(self) -> None:
        """Levels fit their bits; a past has a length; weights and steps are not negative."""
        require(1 <= self.bits <= MAX_BITS, f"method.bits must be in 1 .. {MAX_BITS}", self.bits)
        require(self.depth >= 0, "method.depth must not be negative", self.depth)
        require(self.xi >= 0, "method.xi must not be negative", self.xi)
        require(self.max_lag is None or self.max_lag >= 1, "method.max_lag must be at least 1 (or null)", self.max_lag)
        require(self.server_lr >= 0, "method.server_lr must not be negative", self.server_lr)

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """The link that quantises and stays silent."""
        return {"update": LaqLink(self.bits, self.max_lag)}

    def halves(self, buffers: BufferPolicy) -> tuple[MovementServer, TrainingClient]:
        """FedAvg's server or MIFA's, which also tells how far the model moved; clients as in FedAvg."""
        del buffers
        xi = self.xi / self.server_lr**2 if self.server_lr else 0.0  # without a step nothing moves
        return MovementServer(estimates_server(self.agg, self.server_lr), self.depth, xi), TrainingClient()
