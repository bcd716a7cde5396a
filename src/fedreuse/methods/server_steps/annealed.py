"""A server step that shortens over the run.

f_t = first                                                  up to step h = hold * rounds
    = first + (last - first) (t - h) / (rounds - h)          later; `last` from step `rounds` on
w_t = w_t-1 + step(f_t D_t)                                  by another step

Old updates and few clients per step add noise that a constant step never averages out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import require
from fedreuse.core.registry import part
from fedreuse.core.tensors import Tensors, scale
from fedreuse.core.values import value
from fedreuse.methods.server_steps.server_step import ServerStep, server_steps

if TYPE_CHECKING:
    from fedreuse.methods.aggregators.aggregator import Statistics

__all__ = ["Annealed", "AnnealedStep"]


@value
class Annealed:
    """The state of the inner step, and the number of steps so far."""

    inner: Any = None
    num_steps: int = 0


@server_steps.register("annealed")
@dataclass(frozen=True)
class AnnealedStep(ServerStep):
    """The move of another step along a direction that is shortened linearly towards the end of the run.

    Args:
        rounds: Step from which on the factor is `last`, at least 1; usually `rounds.count`.
        first: Factor on the direction at the beginning, at least 0.
        last: Factor on the direction at the end, at least 0.
        hold: Share of the rounds before the factor changes, in [0, 1).
        inner: The server step that moves the model.

    Example: `method: {name: averaging, step: {name: annealed, rounds: 60, last: 0.1}}`.
    """

    rounds: int
    first: float = 1.0
    last: float = 0.0
    hold: float = 0.0
    inner: ServerStep = part(server_steps, "sgd")

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.rounds >= 1, "step.rounds must be at least 1", self.rounds)
        require(self.first >= 0, "step.first must not be negative", self.first)
        require(self.last >= 0, "step.last must not be negative", self.last)
        require(0 <= self.hold < 1, "step.hold must be in [0, 1)", self.hold)

    @property
    def reads_statistics(self) -> bool:
        """True if the inner step reads statistics."""
        return self.inner.reads_statistics

    @property
    def reads_slopes(self) -> bool:
        """True if the inner step reads slopes."""
        return self.inner.reads_slopes

    def factor(self, number: int) -> float:
        """Return the factor of a step, counted from 1."""
        held = self.hold * self.rounds
        share = min(1.0, max(0.0, (number - held) / (self.rounds - held)))
        return self.first + (self.last - self.first) * share

    def init(self, like: Tensors) -> Annealed:
        """Return the inner step's state."""
        return Annealed(self.inner.init(like))

    def step(self, direction: Tensors, state: Annealed, statistics: Statistics) -> tuple[Tensors, Annealed]:
        """Return the inner step's move along the shortened direction."""
        number = state.num_steps + 1
        move, after = self.inner.step(scale(direction, self.factor(number)), state.inner, statistics)
        return move, Annealed(after, number)

    def evaluated(self, weights: Tensors, state: Annealed) -> Tensors:
        """Return the weights that the inner step evaluates."""
        return self.inner.evaluated(weights, state.inner)
