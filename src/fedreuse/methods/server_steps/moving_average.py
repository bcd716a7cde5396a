"""Evaluation of a moving average of the models, while clients receive the last one.

w_t = w_t-1 + move_t                     by another step; sent to clients
a_t = beta a_t-1 + (1 - beta) w_t        evaluated; a_1 = w_1

The state is the lag L_t = w_t - a_t = beta (L_t-1 + move_t), which needs no model.

A mean over few clients with skewed labels oscillates around its limit, and a codec's error adds to that. The average
removes the oscillation (Polyak & Juditsky, 1992; Caldarola et al., 2022, for the server of a federation), and neither
bytes nor the clients' work change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import require
from fedreuse.core.registry import part
from fedreuse.core.tensors import Tensors, add, scale, sub, zeros
from fedreuse.core.values import value
from fedreuse.methods.server_steps.server_step import ServerStep, server_steps

if TYPE_CHECKING:
    from fedreuse.methods.aggregators.aggregator import Statistics

__all__ = ["Averaged", "MovingAverageStep"]


@value
class Averaged:
    """The state of the inner step, and the lag of the average behind the model; None before the first step."""

    inner: Any = None
    lag: Tensors | None = None


@server_steps.register("moving_average")
@dataclass(frozen=True)
class MovingAverageStep(ServerStep):
    """The move of another step, with evaluation of a moving average of the models.

    Args:
        beta: Weight of the last average, in [0, 1): the average is about 1 / (1 - beta) rounds long. 0 evaluates the
            last model, as the inner step alone.
        inner: The server step that moves the model.

    Example: `method: {name: averaging, step: {name: moving_average, beta: 0.7}}`.
    """

    beta: float = 0.7
    inner: ServerStep = part(server_steps, "sgd")

    def __post_init__(self) -> None:
        """Check the range."""
        require(0 <= self.beta < 1, "step.beta must be in [0, 1)", self.beta)

    @property
    def reads_statistics(self) -> bool:
        """True if the inner step reads statistics."""
        return self.inner.reads_statistics

    @property
    def reads_slopes(self) -> bool:
        """True if the inner step reads slopes."""
        return self.inner.reads_slopes

    def init(self, like: Tensors) -> Averaged:
        """Return the inner step's state, without an average."""
        return Averaged(self.inner.init(like))

    def step(self, direction: Tensors, state: Averaged, statistics: Statistics) -> tuple[Tensors, Averaged]:
        """Return the inner step's move; update the lag."""
        move, after = self.inner.step(direction, state.inner, statistics)
        lag = zeros(direction.schema) if state.lag is None else scale(add(state.lag, move), self.beta)
        return move, Averaged(after, lag)

    def evaluated(self, weights: Tensors, state: Averaged) -> Tensors:
        """Return the average."""
        ahead = self.inner.evaluated(weights, state.inner)  # the inner step may itself evaluate another model
        return ahead if state.lag is None or self.beta == 0 else sub(ahead, state.lag)
