"""Adam, Yogi and Adagrad at the server (Reddi et al., 2021), which differ only in the rule of the second moment.

m = beta1 m + (1 - beta1) D;  v by rule;  move = lr * m / (sqrt(v) + tau)

adam      v = beta2 v + (1 - beta2) D^2
yogi      v = v - (1 - beta2) D^2 sign(v - D^2)
adagrad   v = v + D^2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.core.errors import require
from fedreuse.core.tensors import Tensors, to_dense, zeros
from fedreuse.core.values import value
from fedreuse.methods.server_steps.server_step import ServerStep, server_steps

if TYPE_CHECKING:
    from fedreuse.methods.aggregators.aggregator import Statistics

__all__ = ["AdagradStep", "AdamStep", "AdaptiveStep", "Moments", "YogiStep"]


@value
class Moments:
    """First and second moment of the direction, and the number of steps so far."""

    first: Tensors
    second: Tensors
    num_steps: int


@dataclass(frozen=True)
class AdaptiveStep(ServerStep):
    """Base class of adaptive server steps.

    Args:
        lr: The server's learning rate, at least 0.
        beta1: Decay of the first moment, in [0, 1).
        beta2: Decay of the second moment, in [0, 1).
        tau: Added to the root of the second moment, above 0; the larger, the less adaptive.
        v0: Initial second moment, at least 0; null is tau squared, as published.
        bias_correction: Divide m by 1 - beta1^t and v by 1 - beta2^t, with t = 1 in the first step.
    """

    lr: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    v0: float | None = None
    bias_correction: bool = False

    forgets: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.lr >= 0, "step.lr must not be negative", self.lr)
        require(0 <= self.beta1 < 1, "step.beta1 must be in [0, 1)", self.beta1)
        require(0 <= self.beta2 < 1, "step.beta2 must be in [0, 1)", self.beta2)
        require(self.tau > 0, "step.tau must be positive", self.tau)
        require(self.v0 is None or self.v0 >= 0, "step.v0 must not be negative", self.v0)

    def init(self, like: Tensors) -> Moments:
        """Return m = 0, v = v0."""
        start = self.tau**2 if self.v0 is None else self.v0
        second = np.full(like.schema.size, start, like.schema.dtype)
        return Moments(zeros(like.schema), Tensors(like.schema, second), 0)

    def step(self, direction: Tensors, state: Moments, statistics: Statistics) -> tuple[Tensors, Moments]:
        """Return lr * m / (sqrt(v) + tau), coordinate by coordinate, and the new moments."""
        del statistics
        schema, change = direction.schema, to_dense(direction).values
        kind = schema.dtype.type  # factors in the dtype of the weights, so that the result keeps it
        first = kind(self.beta1) * state.first.values + kind(1 - self.beta1) * change
        second = self.second(state.second.values, change * change)
        number = state.num_steps + 1
        m, v = first, second
        if self.bias_correction:
            m = first / kind(1 - self.beta1**number)
            v = second / kind(1 - self.beta2**number) if self.forgets else second
        move = kind(self.lr) * m / (np.sqrt(v) + kind(self.tau))
        return Tensors(schema, move), Moments(Tensors(schema, first), Tensors(schema, second), number)

    def second(self, v: np.ndarray, square: np.ndarray) -> np.ndarray:
        """Return the new second moment, from the old one and the squared direction."""
        del v, square
        raise TypeError(f"{type(self).__name__} must define second(v, square), the rule of its second moment")


@server_steps.register("adam")
@dataclass(frozen=True)
class AdamStep(AdaptiveStep):
    """Adam: the second moment is a moving average.

    Example: `method: {name: averaging, step: {name: adam, lr: 0.01}}`.
    """

    def second(self, v: np.ndarray, square: np.ndarray) -> np.ndarray:
        """Return beta2 v + (1 - beta2) D^2."""
        kind = square.dtype.type
        result: np.ndarray = kind(self.beta2) * v + kind(1 - self.beta2) * square
        return result


@server_steps.register("yogi")
@dataclass(frozen=True)
class YogiStep(AdaptiveStep):
    """Yogi: the second moment changes by at most the squared direction, however large it is.

    Example: `method: {name: averaging, step: {name: yogi, lr: 0.01}}`.
    """

    def second(self, v: np.ndarray, square: np.ndarray) -> np.ndarray:
        """Return v - (1 - beta2) D^2 sign(v - D^2)."""
        result: np.ndarray = v - square.dtype.type(1 - self.beta2) * square * np.sign(v - square)
        return result


@server_steps.register("adagrad")
@dataclass(frozen=True)
class AdagradStep(AdaptiveStep):
    """Adagrad: the second moment is a sum and never decreases.

    Args:
        beta2: Decay of the second moment, in [0, 1); ignored, because a sum does not decay.
        bias_correction: Divide m by 1 - beta1^t, with t = 1 in the first step; a sum of squares has no bias.

    Example: `method: {name: averaging, step: {name: adagrad, lr: 0.1}}`.
    """

    beta1: float = 0.0

    forgets: ClassVar[bool] = False

    def second(self, v: np.ndarray, square: np.ndarray) -> np.ndarray:
        """Return v + D^2."""
        result: np.ndarray = v + square
        return result
