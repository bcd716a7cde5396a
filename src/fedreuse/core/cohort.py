"""The clients selected for one round, of which population, and the random streams of that round."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fedreuse.core.population import Population
from fedreuse.core.randomness import stream

__all__ = ["Cohort"]


@dataclass(frozen=True)
class Cohort:
    """Who is selected in a round (ascending), who will be in the rounds after it (nearest first), and of whom.

    `lr_factor` is this round's local learning rate relative to the first: memories of updates are rescaled by it.
    """

    round_number: int
    clients: tuple[int, ...]
    seed: int
    look_ahead: tuple[tuple[int, ...], ...] = ()
    population: Population = field(default_factory=lambda: Population(np.zeros(0, np.int64)), compare=False)
    lr_factor: float = 1.0

    def rng(self, purpose: str) -> np.random.Generator:
        """The server's stream for a purpose in this round."""
        return stream(self.seed, purpose, self.round_number)

    def rng_of(self, purpose: str, client: int) -> np.random.Generator:
        """A client's stream for a purpose in this round."""
        return stream(self.seed, purpose, self.round_number, client)
