"""Damping: a shorter server step while clients follow the server's model too slowly for the length of their updates.

g_i = -<u_i - u_i', h_i - h_i'> / |h_i - h_i'|^2    of client i: its update u_i from the model h_i that it holds, and
                                                    its last ones u_i', h_i'
b_i = p (|w - h_i'| - |w - h_i|) / |w - h_i|        rate at which h_i follows the server's model w; p = cohort / clients
    = |w - h_i'| / (|w - h_i| (t - 1))              if h_i' is the initial model: a first request, in round t
g   = 0.9 g + 0.1 median_i g_i                      starts at 0
s   = min(1, median_i b_i / g)                      factor on the direction

A client trains from h_i, and its reply changes w, which reaches h_i only in part: a loop with a delay at each end. Let
both links send a share of what they owe per round, a (replies) and b (requests), and let an update from h be -g h. Then

    e' = -p g h - a e        w' = s (a / p) e        h' = b (w - h)

has the polynomial x (x + a) (x + b) + s g a b, which is stable if and only if s g < a + b (Routh-Hurwitz). With one
lossless direction the loop is stable for every s. The server cannot measure a, so the step keeps s g <= b.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from statistics import median
from typing import TYPE_CHECKING, Any

from fedreuse.core.registry import part
from fedreuse.core.tensors import Tensors, scale
from fedreuse.core.values import value
from fedreuse.methods.server_steps.server_step import ServerStep, server_steps

if TYPE_CHECKING:
    from fedreuse.methods.aggregators.aggregator import Statistics

__all__ = ["Damped", "DampedStep"]

_KEPT = 0.9
"""Weight of earlier rounds in the slope: a steep start passes before a loop with these delays can grow."""
_STEEPEST = 2.0
"""Above it FedAvg itself diverges; a larger report is false."""


@value
class Damped:
    """The state of the inner step, and the mean slope."""

    inner: Any = None
    slope: float = 0.0


@server_steps.register("damped")
@dataclass(frozen=True)
class DampedStep(ServerStep):
    """The move of another step, shortened while clients follow the server's model too slowly.

    Without a downlink that keeps what clients hold (`delta`, `broadcast`) it is the inner step. Replies carry one
    number more.

    Args:
        inner: The server step that moves the model.

    Example: `method: {name: averaging, step: {name: damped}}`.
    """

    inner: ServerStep = part(server_steps, "sgd")

    @property
    def reads_statistics(self) -> bool:
        """True: rates and slopes are those of this round's contributions."""
        return True

    @property
    def reads_slopes(self) -> bool:
        """True."""
        return True

    def init(self, like: Tensors) -> Damped:
        """Return the inner step's state and slope 0."""
        return Damped(self.inner.init(like))

    def step(self, direction: Tensors, state: Damped, statistics: Statistics) -> tuple[Tensors, Damped]:
        """Return the inner step's move along s * D."""
        given = statistics.contributions.values()
        slopes = [one.slope for one in given if one.slope is not None and isfinite(one.slope)]
        slope = state.slope
        if slopes:
            slope = _KEPT * slope + (1 - _KEPT) * min(max(median(slopes), 0.0), _STEEPEST)
        rates = [one.follows for one in given if one.follows is not None]
        factor = min(1.0, median(rates) / slope) if rates and slope else 1.0
        damped = direction if factor == 1 else scale(direction, factor)
        move, after = self.inner.step(damped, state.inner, statistics)
        return move, Damped(after, slope)

    def evaluated(self, weights: Tensors, state: Damped) -> Tensors:
        """Return the weights that the inner step evaluates."""
        return self.inner.evaluated(weights, state.inner)
