"""DeComFL (Li et al., 2025): zeroth-order steps along directions that all ends draw alike; only scalars are sent.

k = 1 .. steps, from v = w; p = 1 .. directions:
    g_i,k,p = (F_i(v + mu z_k,p) - F_i(v - mu z_k,p)) / (2 mu)       one batch of client i for each k
    v      -= lr / P sum_p g_i,k,p z_k,p
w -= lr / P sum_k,p (sum_S omega_i g_i,k,p) z_k,p                    at the server, and at every client by replay
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import require
from fedreuse.core.method import MethodConfig, methods
from fedreuse.core.model import Model
from fedreuse.core.needs import Needs
from fedreuse.methods.directions import along, check_shared, signs
from fedreuse.methods.replay import Replay, ReplayClient, ReplayServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fedreuse.core.local_trainer import LocalTrainer
    from fedreuse.core.method import BufferPolicy, Scope
    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors

__all__ = ["DeComFl", "Slopes", "slope"]


@methods.register(
    "decomfl", refuses={"aggregate": "it averages scalars", "step": "its step moves along random directions"}
)
@dataclass(frozen=True)
class DeComFl(MethodConfig):
    """DeComFL: zeroth-order optimisation in which clients and server exchange scalars only.

    Args:
        steps: Local steps per round, at least 1.
        directions: Directions of a step, at least 1; each costs two forward passes and one number both ways.
        lr: Learning rate, above 0. The variance of a step grows with the number of weights, so it is far below that
            of first-order training.
        mu: Distance of the two points at which the loss is compared, above 0.
        basis: Seed of the directions, the same at both ends.

    Raises:
        ConfigError: If a value is out of range.

    Example: `method: {name: decomfl, steps: 5, directions: 10, lr: 1.0e-3}`.
    """

    steps: int = 5
    directions: int = 10
    lr: float = 1e-3
    mu: float = 1e-3
    basis: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.steps >= 1, "method.steps must be at least 1", self.steps)
        require(self.directions >= 1, "method.directions must be at least 1", self.directions)
        require(self.lr > 0, "method.lr must be above 0", self.lr)
        require(self.mu > 0, "method.mu must be above 0", self.mu)

    @property
    def needs(self) -> Needs:
        """Losses at given models."""
        return Needs(losses=True)

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
        check_shared("decomfl", scope)

    def halves(self, buffers: BufferPolicy) -> tuple[ReplayServer, ReplayClient]:
        """Return both halves; running statistics do not change."""
        del buffers
        slopes = Slopes(self.steps, self.directions, self.lr, self.mu, self.basis)
        return ReplayServer(slopes), ReplayClient(slopes)


@dataclass(frozen=True)
class Slopes(Replay):
    """Slopes of the loss along directions."""

    steps: int
    directions: int
    lr: float
    mu: float
    basis: int

    def count(self, schema: Schema) -> int:
        """Return local steps x directions."""
        del schema
        return self.steps * self.directions

    def measure(self, received: Model, step: int, trainer: LocalTrainer) -> tuple[np.ndarray, Model]:
        """Take local steps, and return the slopes along their directions."""
        size, at, slopes = received.weights.schema.size, received, []
        for number in range(self.steps):
            drawn = [signs(self.basis, step, number * self.directions + one, size) for one in range(self.directions)]
            found = [slope(at, direction, self.mu, trainer, f"batches {number}") for direction in drawn]
            moves = ((-self.lr / self.directions * one, direction) for one, direction in zip(found, drawn, strict=True))
            at = Model(along(at.weights, moves), at.buffers, at.counters)
            slopes += found
        return np.array(slopes), at

    def coordinates(self, mean: np.ndarray) -> np.ndarray:
        """Return -lr / P times the mean slopes."""
        return -self.lr / self.directions * mean

    def move(self, weights: Tensors, step: int, coordinates: np.ndarray) -> Tensors:
        """Return the weights moved along all directions of a step."""
        return along(weights, self._moves(weights.schema.size, step, coordinates))

    def _moves(self, size: int, step: int, coordinates: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
        for number, coordinate in enumerate(coordinates.tolist()):
            yield coordinate, signs(self.basis, step, number, size)


def slope(at: Model, direction: np.ndarray, mu: float, trainer: LocalTrainer, purpose: str) -> float:
    """Return (F(w + mu z) - F(w - mu z)) / (2 mu) on one batch."""
    ahead, behind = (
        trainer.loss(Model(along(at.weights, [(shift, direction)]), at.buffers, at.counters), purpose)
        for shift in (mu, -mu)
    )
    return (ahead - behind) / (2 * mu)
