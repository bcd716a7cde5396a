"""Server momentum: b = beta b + D; move = lr * b, or Nesterov's lr * (beta b + D)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.core.errors import require
from fedreuse.core.tensors import Tensors, add, scale, zeros
from fedreuse.methods.server_steps.server_step import ServerStep, server_steps

if TYPE_CHECKING:
    from fedreuse.methods.aggregators.aggregator import Statistics

__all__ = ["MomentumStep"]


@server_steps.register("momentum")
@dataclass(frozen=True)
class MomentumStep(ServerStep):
    """Server momentum: heavy ball, or Nesterov's form of it.

    Args:
        lr: Server learning rate, at least 0.
        beta: Momentum, in [0, 1). With beta 0 and lr 1 the move is the direction.
        nesterov: Use Nesterov momentum.

    Example: `method: {name: averaging, step: {name: momentum, lr: 0.3}}`.
    """

    lr: float = 1.0
    beta: float = 0.9
    nesterov: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.lr >= 0, "step.lr must not be negative", self.lr)
        require(0 <= self.beta < 1, "step.beta must be in [0, 1)", self.beta)

    def init(self, like: Tensors) -> Tensors:
        """Return b = 0."""
        return zeros(like.schema)

    def step(self, direction: Tensors, state: Tensors, statistics: Statistics) -> tuple[Tensors, Tensors]:
        """Return the move and b = beta b + D."""
        del statistics
        ball = add(scale(state, self.beta), direction)
        ahead = add(scale(ball, self.beta), direction) if self.nesterov else ball
        return (ahead if self.lr == 1.0 else scale(ahead, self.lr)), ball
