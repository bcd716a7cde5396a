"""STC in both directions (Sattler et al., 2020): the server, too, moves by sparse ternary steps and remembers the rest.

D_t    = server_lr * sum_S omega_i sent_i                     clients as in stc_up
step_t = ternary(A_t + D_t)
A_t+1  = A_t + D_t - step_t                                   waits at the server
w_t+1  = w_t + step_t

A client that was last there tau rounds ago lacks the sum of tau sparse steps: the link `delta` sends the coordinates
in which its model differs, or everything where that is shorter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.codecs.nonzero import Nonzero
from fedreuse.codecs.ternary import Ternary
from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.tensors import Tensors, add, scale, sub, zeros
from fedreuse.links.delta import Delta
from fedreuse.links.error_feedback import ErrorFeedback
from fedreuse.methods.averaging import AveragingServer, TrainingClient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.method import BufferPolicy, Link

__all__ = ["StcUpDown", "TernaryStep"]


@methods.register("stc_updown")
@dataclass(frozen=True)
class StcUpDown(MethodConfig):
    """Sparse ternary updates up and sparse ternary steps of the model, with error feedback at both ends."""

    ratio: float = 0.2
    server_ratio: float = 0.2
    server_lr: float = 1.0
    weights: Literal["ratio", "ht"] = "ratio"

    def __post_init__(self) -> None:
        """The codecs check their own ratios."""
        require(self.server_lr >= 0, "method.server_lr must not be negative", self.server_lr)
        require(0 < self.server_ratio <= 1, "method.server_ratio must be in (0, 1]", self.server_ratio)
        Ternary(self.ratio)

    @property
    def default_uplink(self) -> Mapping[str, Link]:
        """Ternary updates with error feedback."""
        return {"update": ErrorFeedback(Ternary(self.ratio))}

    @property
    def default_downlink(self) -> Mapping[str, Link]:
        """What changed since the client was last there, to the bit: a rounded copy would soon differ everywhere."""
        return {"model": Delta(Nonzero(), arithmetic="bits")}

    def halves(self, buffers: BufferPolicy) -> tuple[AveragingServer, TrainingClient]:
        """FedAvg's, with a server step that is itself ternary."""
        del buffers
        return AveragingServer(TernaryStep(self.server_ratio, self.server_lr), self.weights), TrainingClient()


@dataclass(frozen=True)
class TernaryStep:
    """A server step that moves a few coordinates by one magnitude, and keeps the rest of the direction for later."""

    ratio: float
    lr: float = 1.0

    def init(self, like: Tensors) -> Tensors:
        """A = 0."""
        return zeros(like.schema)

    def step(self, direction: Tensors, state: Tensors) -> tuple[Tensors, Tensors]:
        """The ternary part of A + lr D, and the rest."""
        wanted = add(state, direction if self.lr == 1.0 else scale(direction, self.lr))
        move = Ternary(self.ratio).encode(wanted, wanted.schema).decode(wanted.schema)
        return move, sub(wanted, move)
