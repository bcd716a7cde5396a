"""FedExP (Jhunjhunwala, Wang, Joshi, 2023): the step is the longer, the more the updates differ from each other.

factor = max(1, sum_i omega_i |delta_i|^2 / (2 (|D|^2 + eps)))        move = factor * D

What is evaluated is the mean of the last two models, because a long step swings around the optimum.
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
    """Move further than the mean where updates point in different directions; evaluate the mean of the last two models.

    Args:
        eps: Added to the squared norm of the direction, above 0, in units of squared updates: larger is more careful.
            Updates that are all equal give a factor of 1, which is FedAvg; M orthogonal ones of equal length M / 2.

    Example: `method: {name: averaging, step: {name: extrapolation, eps: 0.1}}`.
    """

    eps: float = 1e-3

    reads_statistics: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the range."""
        require(self.eps > 0, "step.eps must be positive", self.eps)

    def step(self, direction: Tensors, state: Tensors | None, statistics: Statistics) -> tuple[Tensors, Tensors]:
        """factor * D; the state is half the last move, and zero after the first: there is one model to evaluate."""
        factor = max(1.0, statistics.mean_square_norm / (2 * (dot(direction, direction) + self.eps)))
        move = direction if factor == 1.0 else scale(direction, factor)
        return move, zeros(direction.schema) if state is None else scale(move, 0.5)

    def evaluated(self, weights: Tensors, state: Tensors | None) -> Tensors:
        """The mean of the last two models."""
        return weights if state is None else sub(weights, state)
