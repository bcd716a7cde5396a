"""EvoFed (Rahimi et al., 2023): clients send the fitness of a population of perturbations that all ends draw alike.

y_i     = local training from w
f_i,b,n = -|(y_i - w)_b - sigma e_n|^2                 fitness of member n in block b; e_n: signs, for all blocks
f_b,n   = sum_S omega_i f_i,b,n
c_b,n   = lr (f_b,n - mean_n f_b,n) / (2 sigma N)      lr 1: an unbiased estimate of the mean update, but for centring
w_b    += sum_n c_b,n e_n
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.tensors import Tensors
from fedreuse.methods.directions import check_shared, signs
from fedreuse.methods.replay import Replay, ReplayClient, ReplayServer

if TYPE_CHECKING:
    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.method import BufferPolicy, Scope
    from fedreuse.core.model import Model
    from fedreuse.core.schema import Schema

__all__ = ["EvoFed", "Fitness"]


@methods.register(
    "evofed", refuses={"aggregate": "it averages fitness values", "step": "its step is an evolution step"}
)
@dataclass(frozen=True)
class EvoFed(MethodConfig):
    """EvoFed: fitness values of a shared population of perturbations in both directions.

    Args:
        population: Members of the population, at least 2; the numbers that are sent for each block.
        block: Weights of a block, at least 1; the last block may be shorter.
        lr: Server learning rate, above 0. 1 is the unbiased estimate, whose error is block / population times the
            update; population / block makes it a projection.
        sigma: Size of the perturbations, above 0; about that of an update's coordinates.
        basis: Seed of the population, the same at both ends.

    Raises:
        ConfigError: If a value is out of range.

    Example: `method: {name: evofed, population: 20, lr: 0.05}`.
    """

    population: int = 20
    block: int = 1024
    lr: float = 0.05
    sigma: float = 0.01
    basis: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.population >= 2, "method.population must be at least 2", self.population)
        require(self.block >= 1, "method.block must be at least 1", self.block)
        require(self.lr > 0, "method.lr must be above 0", self.lr)
        require(self.sigma > 0, "method.sigma must be above 0", self.sigma)

    @property
    def uplink_groups(self) -> tuple[str, ...]:
        """None: numbers are sent as they are."""
        return ()

    @property
    def downlink_groups(self) -> tuple[str, ...]:
        """None: numbers are sent as they are."""
        return ()

    def check(self, scope: Scope) -> None:
        """Refuse a federation whose clients do not create the initial model."""
        check_shared("evofed", scope)

    def halves(self, buffers: BufferPolicy) -> tuple[ReplayServer, ReplayClient]:
        """Return both halves; buffers are averaged over the clients."""
        del buffers
        fitness = Fitness(self.population, self.block, self.lr, self.sigma, self.basis)
        return ReplayServer(fitness), ReplayClient(fitness)


@dataclass(frozen=True)
class Fitness(Replay):
    """Fitness of members, block by block."""

    population: int
    block: int
    lr: float
    sigma: float
    basis: int

    def count(self, schema: Schema) -> int:
        """Return members x blocks."""
        return self.population * -(-schema.size // self.block)

    def measure(self, received: Model, step: int, trainer: LocalTrainer) -> tuple[np.ndarray, Model]:
        """Train, and return the fitness of every member in every block."""
        trained = trainer.train(received).model
        update = self._blocks(trained.weights.values.astype(np.float64) - received.weights.values)
        perturbations = self.sigma * self._members(step, np.float64)
        squares = np.sum(update * update, axis=1)[:, None] + self._lengths(received.weights.schema)[:, None]
        # |u - s e|^2 = |u|^2 + s^2 |e|^2 - 2 u . s e, in the part of the last block that exists
        fitness: np.ndarray = -(squares - 2 * update @ perturbations.T)
        return fitness.reshape(-1), trained

    def coordinates(self, mean: np.ndarray) -> np.ndarray:
        """Return lr (f - mean f) / (2 sigma N)."""
        fitness = mean.reshape(-1, self.population)
        centred = fitness - fitness.mean(axis=1, keepdims=True)
        coordinates: np.ndarray = (self.lr / (2 * self.sigma * self.population) * centred).reshape(-1)
        return coordinates

    def move(self, weights: Tensors, step: int, coordinates: np.ndarray) -> Tensors:
        """Return the weights moved along the members, one after another."""
        members = self._members(step, weights.values.dtype)
        factors = coordinates.reshape(-1, self.population).astype(weights.values.dtype)
        moved = self._blocks(weights.values)
        for number, member in enumerate(members):
            moved += factors[:, number, None] * member
        return Tensors(weights.schema, moved.reshape(-1)[: weights.schema.size])

    def _blocks(self, values: np.ndarray) -> np.ndarray:
        """Return a copy as rows of one block each, padded with zeros."""
        rows = -(-len(values) // self.block)
        blocks = np.zeros(rows * self.block, values.dtype)
        blocks[: len(values)] = values
        return blocks.reshape(rows, self.block)

    def _lengths(self, schema: Schema) -> np.ndarray:
        """Return sigma^2 |e|^2 by block: the last block may be shorter."""
        starts = np.arange(-(-schema.size // self.block)) * self.block
        return self.sigma**2 * np.minimum(self.block, schema.size - starts)

    def _members(self, step: int, dtype: np.typing.DTypeLike) -> np.ndarray:
        return np.stack([signs(self.basis, step, n, self.block) for n in range(self.population)]).astype(dtype)
