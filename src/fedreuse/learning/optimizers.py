"""Local optimisers on one flat vector, and learning rates over rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from math import cos, pi
from typing import TYPE_CHECKING

import torch
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from fedreuse.core.errors import require
from fedreuse.core.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Adam", "LearningRate", "Optimizer", "Sgd", "learning_rates", "optimizers"]


class Optimizer(ABC):
    """Base class of local optimizers: a rule of torch.optim by its functional form, with `lr` and `momentum`.

    The optimizer classes of torch are not used because importing them imports torch's compiler, which takes 1.4 s.
    """

    lr: float
    """Learning rate of the first round."""

    @property
    def momentum(self) -> float:
        """Heavy-ball momentum, which control variates need to normalise by; 0 by default."""
        return 0.0

    @abstractmethod
    def stepper(self, vector: torch.nn.Parameter, lr: float) -> Callable[[], None]:
        """Return a function that takes one step along the vector's gradient; its state lasts for one local training."""


class LearningRate(ABC):
    """A factor on the local learning rate, by round."""

    @abstractmethod
    def factor(self, round_number: int) -> float:
        """1 in the first round."""


optimizers: Registry[Optimizer] = Registry("optimizers", "fedreuse.learning.optimizers", base=Optimizer)
learning_rates: Registry[LearningRate] = Registry("learning_rates", "fedreuse.learning.optimizers", base=LearningRate)


@optimizers.register("sgd")
@dataclass(frozen=True)
class Sgd(Optimizer):
    """Stochastic gradient descent with heavy-ball momentum and weight decay.

    Args:
        lr: Learning rate, positive.
        momentum: Share of the last step that is repeated, in [0, 1).
        weight_decay: Pull of every weight towards zero, not negative; added to the gradient.

    Example: `local: {optimizer: {name: sgd, lr: 0.05}}`.
    """

    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 1e-4

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 < self.lr < float("inf"), "local.optimizer.lr must be positive and finite", self.lr)
        require(0 <= self.momentum < 1, "local.optimizer.momentum must be in [0, 1)", self.momentum)
        require(self.weight_decay >= 0, "local.optimizer.weight_decay must not be negative", self.weight_decay)

    def stepper(self, vector: torch.nn.Parameter, lr: float) -> Callable[[], None]:
        """torch's fused SGD."""
        buffers: list[torch.Tensor | None] = [None]
        rule = partial(sgd, lr=lr, momentum=self.momentum, weight_decay=self.weight_decay, dampening=0.0)

        @torch.no_grad()
        def step() -> None:
            rule([vector], [_gradient(vector)], buffers, fused=True, nesterov=False, maximize=False)

        return step


@optimizers.register("adam")
@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam with bias correction; its moments start at zero in every local training.

    Args:
        lr: Learning rate, positive.
        beta1: Decay of the mean of gradients, in [0, 1).
        beta2: Decay of the mean of squares, in [0, 1).
        eps: Added to the root of the mean of squares, positive.
        weight_decay: Pull of every weight towards zero, not negative; added to the gradient.

    Example: `local: {optimizer: {name: adam, lr: 1e-3}}`.
    """

    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 < self.lr < float("inf"), "local.optimizer.lr must be positive and finite", self.lr)
        require(0 <= self.beta1 < 1, "local.optimizer.beta1 must be in [0, 1)", self.beta1)
        require(0 <= self.beta2 < 1, "local.optimizer.beta2 must be in [0, 1)", self.beta2)
        require(self.eps > 0, "local.optimizer.eps must be positive", self.eps)
        require(self.weight_decay >= 0, "local.optimizer.weight_decay must not be negative", self.weight_decay)

    @property
    def momentum(self) -> float:
        """Adam has no heavy-ball buffer."""
        return 0.0

    def stepper(self, vector: torch.nn.Parameter, lr: float) -> Callable[[], None]:
        """torch's fused Adam."""
        mean, square, count = torch.zeros_like(vector), torch.zeros_like(vector), torch.zeros((), device=vector.device)
        rule = partial(adam, lr=lr, beta1=self.beta1, beta2=self.beta2, eps=self.eps, weight_decay=self.weight_decay)

        @torch.no_grad()
        def step() -> None:
            gradient = [_gradient(vector)]
            rule([vector], gradient, [mean], [square], [], [count], fused=True, amsgrad=False, maximize=False)

        return step


@learning_rates.register("constant")
@dataclass(frozen=True)
class Constant(LearningRate):
    """The same learning rate in every round.

    Example: `local: {lr_schedule: constant}`.
    """

    def factor(self, round_number: int) -> float:
        """Always 1."""
        del round_number
        return 1.0


@learning_rates.register("step")
@dataclass(frozen=True)
class Step(LearningRate):
    """Multiply by `gamma` every `every` rounds.

    Args:
        every: Rounds between two steps, at least 1.
        gamma: The factor, positive.

    Example: `local: {lr_schedule: {name: step, every: 30}}`.
    """

    every: int = 30
    gamma: float = 0.1

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.every >= 1, "local.lr_schedule.every must be at least 1", self.every)
        require(self.gamma > 0, "local.lr_schedule.gamma must be positive", self.gamma)

    def factor(self, round_number: int) -> float:
        """gamma ^ (full periods before this round)."""
        return float(self.gamma ** ((round_number - 1) // self.every))


@learning_rates.register("exponential")
@dataclass(frozen=True)
class Exponential(LearningRate):
    """Multiply by `gamma` every round.

    Args:
        gamma: The factor, positive.

    Example: `local: {lr_schedule: {name: exponential, gamma: 0.99}}`.
    """

    gamma: float = 0.99

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.gamma > 0, "local.lr_schedule.gamma must be positive", self.gamma)

    def factor(self, round_number: int) -> float:
        """gamma ^ (rounds before this one)."""
        return float(self.gamma ** (round_number - 1))


@learning_rates.register("cosine")
@dataclass(frozen=True)
class Cosine(LearningRate):
    """Fall from 1 to `floor` along half a cosine over `rounds` rounds, then stay.

    Args:
        rounds: Rounds until the floor is reached, at least 2.
        floor: The last factor, in [0, 1].

    Example: `local: {lr_schedule: {name: cosine, rounds: 90}}`.
    """

    rounds: int = 90
    floor: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.rounds >= 2, "local.lr_schedule.rounds must be at least 2", self.rounds)
        require(0 <= self.floor <= 1, "local.lr_schedule.floor must be in [0, 1]", self.floor)

    def factor(self, round_number: int) -> float:
        """floor + (1 - floor) * (1 + cos) / 2."""
        progress = min(1.0, (round_number - 1) / (self.rounds - 1))
        return self.floor + (1 - self.floor) * (1 + cos(pi * progress)) / 2


def _gradient(vector: torch.nn.Parameter) -> torch.Tensor:
    assert vector.grad is not None
    return vector.grad
