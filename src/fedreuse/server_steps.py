"""How the server moves along a direction: (init, step) pairs, whose state is a value like any other.

sgd       move = lr * D
momentum  b = beta b + D;  move = lr * b  (Nesterov: lr * (beta b + D))
adaptive  m = beta1 m + (1 - beta1) D;  v by rule;  move = lr * m / (sqrt(v) + tau)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from fedreuse.core.tensors import Tensors, add, scale, to_dense, zeros
from fedreuse.core.values import value

__all__ = ["Adaptive", "Moments", "Momentum", "ServerStep", "SgdStep"]


class ServerStep(Protocol):
    """Turns a direction into a move of the weights; buffers never pass through here."""

    def init(self, like: Tensors) -> Any:
        """The state before the first step."""
        ...

    def step(self, direction: Tensors, state: Any) -> tuple[Tensors, Any]:
        """The move, and the new state."""
        ...


@dataclass(frozen=True)
class SgdStep:
    """A plain step; with lr 1 the direction itself, bit for bit."""

    lr: float = 1.0

    def init(self, like: Tensors) -> None:
        """Nothing to remember."""

    def step(self, direction: Tensors, state: None) -> tuple[Tensors, None]:
        """lr * D."""
        return (direction if self.lr == 1.0 else scale(direction, self.lr)), state


@dataclass(frozen=True)
class Momentum:
    """Heavy ball, or Nesterov's form of it; with beta 0 and lr 1 the direction itself."""

    lr: float = 1.0
    beta: float = 0.9
    nesterov: bool = False

    def init(self, like: Tensors) -> Tensors:
        """b = 0."""
        return zeros(like.schema)

    def step(self, direction: Tensors, state: Tensors) -> tuple[Tensors, Tensors]:
        """b = beta b + D."""
        ball = add(scale(state, self.beta), direction)
        ahead = add(scale(ball, self.beta), direction) if self.nesterov else ball
        return (ahead if self.lr == 1.0 else scale(ahead, self.lr)), ball


@value
class Moments:
    """First and second moment of the direction, and the number of steps behind them."""

    first: Tensors
    second: Tensors
    num_steps: int


@dataclass(frozen=True)
class Adaptive:
    """Adam, Yogi or Adagrad at the server (Reddi et al., 2021); v starts at v0, tau^2 unless said otherwise.

    Bias correction divides m by 1 - beta1^t and v by 1 - beta2^t with t = 1 in the first step; the sum of squares that
    Adagrad keeps has no bias.
    """

    rule: Literal["adam", "yogi", "adagrad"]
    lr: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    v0: float | None = None
    bias_correction: bool = False

    def init(self, like: Tensors) -> Moments:
        """m = 0, v = v0."""
        start = self.tau**2 if self.v0 is None else self.v0
        second = np.full(like.schema.size, start, like.schema.dtype)
        return Moments(zeros(like.schema), Tensors(like.schema, second), 0)

    def step(self, direction: Tensors, state: Moments) -> tuple[Tensors, Moments]:
        """m / (sqrt(v) + tau), coordinate by coordinate."""
        schema, change = direction.schema, to_dense(direction).values
        kind = schema.dtype.type
        first = kind(self.beta1) * state.first.values + kind(1 - self.beta1) * change
        second = self._second(state.second.values, change * change)
        number = state.num_steps + 1
        m, v = first, second
        if self.bias_correction:
            m = first / kind(1 - self.beta1**number)
            v = second / kind(1 - self.beta2**number) if self.rule != "adagrad" else second
        move = kind(self.lr) * m / (np.sqrt(v) + kind(self.tau))
        return Tensors(schema, move), Moments(Tensors(schema, first), Tensors(schema, second), number)

    def _second(self, v: np.ndarray, square: np.ndarray) -> np.ndarray:
        kind = square.dtype.type
        if self.rule == "adagrad":
            result: np.ndarray = v + square
        elif self.rule == "adam":
            result = kind(self.beta2) * v + kind(1 - self.beta2) * square
        else:
            result = v - kind(1 - self.beta2) * square * np.sign(v - square)
        return result
