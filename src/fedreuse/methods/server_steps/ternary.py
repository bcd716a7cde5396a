"""Sparse ternary server step with error feedback (Sattler et al., 2020).

move = ternary(A + lr D);  A <- A + lr D - move                A stays at the server
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.compression.codecs.ternary import Ternary
from fedreuse.core.errors import require
from fedreuse.core.tensors import Tensors, add, scale, sub, zeros
from fedreuse.methods.server_steps.server_step import ServerStep, server_steps

if TYPE_CHECKING:
    from fedreuse.methods.aggregators.aggregator import Statistics

__all__ = ["TernaryStep"]


@server_steps.register("ternary")
@dataclass(frozen=True)
class TernaryStep(ServerStep):
    """Sparse ternary move: a few coordinates change by one magnitude; the rest of the direction is kept for later.

    Args:
        ratio: Share of the coordinates of each tensor that move, in (0, 1].
        lr: Factor on the direction, at least 0.

    Example: `method: {name: averaging, step: {name: ternary, ratio: 0.05}}`.
    """

    ratio: float = 0.2
    lr: float = 1.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 < self.ratio <= 1, "step.ratio must be in (0, 1]", self.ratio)
        require(self.lr >= 0, "step.lr must not be negative", self.lr)

    def init(self, like: Tensors) -> Tensors:
        """Return A = 0."""
        return zeros(like.schema)

    def step(self, direction: Tensors, state: Tensors, statistics: Statistics) -> tuple[Tensors, Tensors]:
        """Return the ternary part of A + lr D, and the rest."""
        del statistics
        wanted = add(state, direction if self.lr == 1.0 else scale(direction, self.lr))
        move = Ternary(self.ratio).encode(wanted, wanted.schema).decode(wanted.schema)
        return move, sub(wanted, move)
