"""What FedAdam, FedYogi and FedAdagrad share: the averaging template with an adaptive server step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig
from fedreuse.methods.averaging import AveragingServer, TrainingClient
from fedreuse.server_steps import Adaptive

if TYPE_CHECKING:
    from fedreuse.core.method import BufferPolicy
    from fedreuse.server_steps import ServerStep

__all__ = ["FedOpt"]


@dataclass(frozen=True)
class FedOpt(MethodConfig):
    """Fields of the adaptive family; `v0` None starts the second moment at tau^2, as the paper has it."""

    server_lr: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    v0: float | None = None
    bias_correction: bool = False

    def __post_init__(self) -> None:
        """Averages are averages; tau keeps the division finite."""
        require(self.server_lr >= 0, "method.server_lr must not be negative", self.server_lr)
        require(0 <= self.beta1 < 1, "method.beta1 must be in [0, 1)", self.beta1)
        require(0 <= self.beta2 < 1, "method.beta2 must be in [0, 1)", self.beta2)
        require(self.tau > 0, "method.tau must be positive", self.tau)
        require(self.v0 is None or self.v0 >= 0, "method.v0 must not be negative", self.v0)

    def adaptive(self, rule: Literal["adam", "yogi", "adagrad"]) -> ServerStep:
        """The server step with this configuration's numbers."""
        return Adaptive(rule, self.server_lr, self.beta1, self.beta2, self.tau, self.v0, self.bias_correction)

    def step(self) -> ServerStep:
        """The server step of the method."""
        raise TypeError(f"{type(self).__name__} does not say what its server step is: define step()")

    def halves(self, buffers: BufferPolicy) -> tuple[AveragingServer, TrainingClient]:
        """The averaging template; buffers and counters bypass the step."""
        del buffers
        return AveragingServer(self.step()), TrainingClient()
