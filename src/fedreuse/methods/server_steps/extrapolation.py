"""FedExP (Jhunjhunwala, Wang, Joshi, 2023): the more the updates differ from each other, the longer the step.

factor = max(1, sum_i omega_i |delta_i|^2 / (2 (|D|^2 + eps)))        move = factor * D

The evaluated model is the mean of the last two models, because long steps oscillate around the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.core.errors import require
from fedreuse.core.tensors import Tensors, dot, scale, sub, zeros
from fedreuse.methods.server_steps.server_step import ServerStep, server_steps

if TYPE_CHECKING:
    from fedreuse.methods.aggregators.aggregator import Statistics

__all__ = ["ExtrapolationStep"]


@server_steps.register("extrapolation")
@dataclass(frozen=True)
class ExtrapolationStep(ServerStep):
    """Extrapolation beyond the mean if updates differ in direction; evaluates the mean of the last two models.

    Args:
        eps: Added to the squared norm of the direction, above 0, in units of squared updates; larger is more cautious.
            Equal updates give a factor of 1, which is FedAvg; M orthogonal ones of equal length give M / 2.

    Example: `method: {name: averaging, step: {name: extrapolation, eps: 0.1}}`.
    """

    eps: float = 1e-3

    reads_statistics: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the range."""
        require(self.eps > 0, "step.eps must be positive", self.eps)

    def step(self, direction: Tensors, state: Tensors | None, statistics: Statistics) -> tuple[Tensors, Tensors]:
        """Return factor * D and half of the move; zero after the first step, when there is only one trained model."""
        factor = max(1.0, statistics.mean_square_norm / (2 * (dot(direction, direction) + self.eps)))
        move = direction if factor == 1.0 else scale(direction, factor)
        return move, zeros(direction.schema) if state is None else scale(move, 0.5)

    def evaluated(self, weights: Tensors, state: Tensors | None) -> Tensors:
        """Return the mean of the last two models."""
        return weights if state is None else sub(weights, state)
