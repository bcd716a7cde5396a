"""Local optimizers on one flat vector, and learning-rate schedules over rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from math import cos, pi
from typing import TYPE_CHECKING, ClassVar

import torch
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from fedreuse.core.errors import require
from fedreuse.core.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fedreuse.learning.flat_network import FlatNetwork

__all__ = ["Adam", "LearningRate", "Muon", "Optimizer", "Sgd", "learning_rates", "optimizers", "orthogonalised"]


_Pair = tuple[torch.Tensor, torch.Tensor]
"""A weight and its gradient."""
_QUINTIC = (3.4445, -4.7750, 2.0315)
"""Coefficients of Newton-Schulz: the steepest at 0 that keep singular values in about 0.7 to 1.2."""


class Optimizer(ABC):
    """Base class of local optimizers: frozen dataclasses that make a step function for one flat vector.

    The built-in ones use torch's functional forms: importing its optimizer classes imports torch's compiler, which
    takes 1.4 s.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Sign(Optimizer):
        ...     lr: float = 0.01
        ...     def stepper(self, vector, lr):
        ...         return lambda: vector.data.sub_(vector.grad.sign(), alpha=lr)
        >>> vector = torch.nn.Parameter(torch.tensor([1.0, 1.0]))
        >>> vector.grad = torch.tensor([3.0, -0.5])
        >>> Sign().stepper(vector, 0.5)().tolist()
        [0.5, 1.5]
    """

    lr: float
    """Learning rate of the first round."""
    is_elementwise: ClassVar[bool] = False
    """True if a step treats every weight alone, so that one step can move the weights of several clients."""

    @property
    def momentum(self) -> float:
        """Heavy-ball momentum, by which control variates are normalised; 0 by default."""
        return 0.0

    def stepper_of(self, network: FlatNetwork, lr: float) -> Callable[[], None]:
        """Return a step function for a network; by default that of its vector, which ignores the shapes of weights."""
        return self.stepper(network.vector, lr)

    @abstractmethod
    def stepper(self, vector: torch.nn.Parameter, lr: float) -> Callable[[], None]:
        """Return a function that takes one step along the gradient of the vector.

        Args:
            vector: All weights of the network; its `grad` is filled before each step.
            lr: Learning rate of this round.

        The state of the function lasts for one local training.
        """


class LearningRate(ABC):
    """Base class of learning-rate schedules: frozen dataclasses that return a factor on `lr` by round.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class InverseRoot(LearningRate):
        ...     def factor(self, round_number):
        ...         return round_number**-0.5
        >>> InverseRoot().factor(4)
        0.5
    """

    @abstractmethod
    def factor(self, round_number: int) -> float:
        """Return the factor of a round, numbered from 1; it is 1 in the first round."""


optimizers: Registry[Optimizer] = Registry("optimizers", "fedreuse.learning.optimizers", base=Optimizer)
learning_rates: Registry[LearningRate] = Registry("learning_rates", "fedreuse.learning.optimizers", base=LearningRate)


@optimizers.register("sgd")
@dataclass(frozen=True)
class Sgd(Optimizer):
    """Stochastic gradient descent with heavy-ball momentum and weight decay.

    Args:
        lr: Learning rate, positive.
        momentum: Factor on the previous step, in [0, 1).
        weight_decay: L2 penalty, not negative; weight_decay x weight is added to the gradient.

    Example: `local: {optimizer: {name: sgd, lr: 0.05}}`.
    """

    is_elementwise: ClassVar[bool] = True

    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 1e-4

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 < self.lr < float("inf"), "local.optimizer.lr must be positive and finite", self.lr)
        require(0 <= self.momentum < 1, "local.optimizer.momentum must be in [0, 1)", self.momentum)
        require(self.weight_decay >= 0, "local.optimizer.weight_decay must not be negative", self.weight_decay)

    def stepper(self, vector: torch.nn.Parameter, lr: float) -> Callable[[], None]:
        """Return a step of torch's fused SGD."""
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
        beta1: Decay of the mean of the gradients, in [0, 1).
        beta2: Decay of the mean of their squares, in [0, 1).
        eps: Constant added to the root of the mean of the squares, positive.
        weight_decay: L2 penalty, not negative; weight_decay x weight is added to the gradient.

    Example: `local: {optimizer: {name: adam, lr: 1e-3}}`.
    """

    is_elementwise: ClassVar[bool] = True

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
        """0, because Adam has no heavy-ball buffer."""
        return 0.0

    def stepper(self, vector: torch.nn.Parameter, lr: float) -> Callable[[], None]:
        """Return a step of torch's fused Adam."""
        mean, square, count = torch.zeros_like(vector), torch.zeros_like(vector), torch.zeros((), device=vector.device)
        rule = partial(adam, lr=lr, beta1=self.beta1, beta2=self.beta2, eps=self.eps, weight_decay=self.weight_decay)

        @torch.no_grad()
        def step() -> None:
            gradient = [_gradient(vector)]
            rule([vector], gradient, [mean], [square], [], [count], fused=True, amsgrad=False, maximize=False)

        return step


@optimizers.register("muon")
@dataclass(frozen=True)
class Muon(Optimizer):
    """Muon (Jordan et al., 2024): steps along orthogonalised momentum; weights with one dimension take Adam's steps.

    The momentum of a weight with two or more dimensions, as a matrix of its first against the others, is brought near
    the closest orthogonal matrix by Newton-Schulz iterations, and scaled by sqrt(max(1, rows / columns)). Momentum
    starts at zero in every local training.

    Args:
        lr: Learning rate of matrices, positive.
        beta: Factor on the momentum, in [0, 1), with Nesterov's look-ahead.
        iterations: Newton-Schulz iterations, at least 1.
        vector_lr: Learning rate of weights with one dimension as a share of `lr`, positive.
        weight_decay: Decoupled: weights shrink by lr x weight_decay in every step; not negative.

    Raises:
        ConfigError: If a value is out of range.

    Example: `local: {optimizer: {name: muon, lr: 0.02}}`.
    """

    lr: float = 0.02
    beta: float = 0.9
    iterations: int = 5
    vector_lr: float = 0.1
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 < self.lr < float("inf"), "local.optimizer.lr must be positive and finite", self.lr)
        require(0 <= self.beta < 1, "local.optimizer.beta must be in [0, 1)", self.beta)
        require(self.iterations >= 1, "local.optimizer.iterations must be at least 1", self.iterations)
        require(self.vector_lr > 0, "local.optimizer.vector_lr must be positive", self.vector_lr)
        require(self.weight_decay >= 0, "local.optimizer.weight_decay must not be negative", self.weight_decay)

    def stepper(self, vector: torch.nn.Parameter, lr: float) -> Callable[[], None]:
        """Return Adam's step: a vector has no matrices."""
        return self._steps([], [(vector.data, _gradient(vector))], lr)

    def stepper_of(self, network: FlatNetwork, lr: float) -> Callable[[], None]:
        """Return a step that orthogonalises the momentum of every matrix."""
        pairs = network.weights_and_gradients()
        return self._steps([one for one in pairs if one[0].dim() > 1], [one for one in pairs if one[0].dim() < 2], lr)

    def _steps(self, matrices: Sequence[_Pair], vectors: Sequence[_Pair], lr: float) -> Callable[[], None]:
        momenta = [torch.zeros_like(gradient) for _, gradient in matrices]
        means, squares = ([torch.zeros_like(weight) for weight, _ in vectors] for _ in range(2))
        counts = [torch.zeros((), device=weight.device) for weight, _ in vectors]
        rule = partial(adam, lr=lr * self.vector_lr, beta1=self.beta, beta2=0.99, eps=1e-8, weight_decay=0.0)

        @torch.no_grad()
        def step() -> None:
            for (weight, gradient), momentum in zip(matrices, momenta, strict=True):
                momentum.mul_(self.beta).add_(gradient)
                ahead = gradient.add(momentum, alpha=self.beta).reshape(len(gradient), -1)
                scale = max(1.0, ahead.shape[0] / ahead.shape[1]) ** 0.5
                weight.mul_(1 - lr * self.weight_decay)
                weight.sub_(orthogonalised(ahead, self.iterations).view(weight.shape), alpha=lr * scale)
            if vectors:
                weights, gradients = ([pair[at] for pair in vectors] for at in (0, 1))
                rule(weights, gradients, means, squares, [], counts, fused=True, amsgrad=False, maximize=False)

        return step


def orthogonalised(matrix: torch.Tensor, iterations: int) -> torch.Tensor:
    """Return a matrix with the same singular vectors and singular values near 1, by Newton-Schulz iterations."""
    a, b, c = _QUINTIC
    wide = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    moved = wide / (torch.linalg.vector_norm(wide) + 1e-7)
    for _ in range(iterations):
        gram = moved @ moved.T
        moved = a * moved + (b * gram + c * gram @ gram) @ moved
    turned: torch.Tensor = moved.T if matrix.shape[0] > matrix.shape[1] else moved
    return turned


@learning_rates.register("constant")
@dataclass(frozen=True)
class Constant(LearningRate):
    """The same learning rate in every round.

    Example: `local: {lr_schedule: constant}`.
    """

    def factor(self, round_number: int) -> float:
        """Return 1."""
        del round_number
        return 1.0


@learning_rates.register("step")
@dataclass(frozen=True)
class Step(LearningRate):
    """Multiply the learning rate by `gamma` after every `every` rounds.

    Args:
        every: Rounds between two steps, at least 1.
        gamma: Factor, positive.

    Example: `local: {lr_schedule: {name: step, every: 30}}`.
    """

    every: int = 30
    gamma: float = 0.1

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.every >= 1, "local.lr_schedule.every must be at least 1", self.every)
        require(self.gamma > 0, "local.lr_schedule.gamma must be positive", self.gamma)

    def factor(self, round_number: int) -> float:
        """Return gamma ^ (complete periods before this round)."""
        return float(self.gamma ** ((round_number - 1) // self.every))


@learning_rates.register("exponential")
@dataclass(frozen=True)
class Exponential(LearningRate):
    """Multiply the learning rate by `gamma` after every round.

    Args:
        gamma: Factor, positive.

    Example: `local: {lr_schedule: {name: exponential, gamma: 0.99}}`.
    """

    gamma: float = 0.99

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.gamma > 0, "local.lr_schedule.gamma must be positive", self.gamma)

    def factor(self, round_number: int) -> float:
        """Return gamma ^ (rounds before this one)."""
        return float(self.gamma ** (round_number - 1))


@learning_rates.register("cosine")
@dataclass(frozen=True)
class Cosine(LearningRate):
    """Cosine decay of the factor from 1 to `floor` over `rounds` rounds; constant afterwards.

    Args:
        rounds: Rounds until the floor is reached, at least 2.
        floor: Final factor, in [0, 1].

    Example: `local: {lr_schedule: {name: cosine, rounds: 90}}`.
    """

    rounds: int = 90
    floor: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.rounds >= 2, "local.lr_schedule.rounds must be at least 2", self.rounds)
        require(0 <= self.floor <= 1, "local.lr_schedule.floor must be in [0, 1]", self.floor)

    def factor(self, round_number: int) -> float:
        """Return floor + (1 - floor) * (1 + cos(pi * progress)) / 2."""
        progress = min(1.0, (round_number - 1) / (self.rounds - 1))
        return self.floor + (1 - self.floor) * (1 + cos(pi * progress)) / 2


def _gradient(vector: torch.nn.Parameter) -> torch.Tensor:
    assert vector.grad is not None
    return vector.grad
