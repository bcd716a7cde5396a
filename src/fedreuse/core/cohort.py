"""The clients selected for one round, of which population, and the random streams of that round."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fedreuse.core.noise import normal_numbers
from fedreuse.core.population import Population
from fedreuse.core.randomness import stream

__all__ = ["Cohort"]


@dataclass(frozen=True)
class Cohort:
    """The clients of a round, those of the rounds after it, and the random streams of the round.

    Args:
        round_number: The round, from 1.
        clients: Who is selected, in ascending order.
        seed: The run's seed, from which every stream follows.
        look_ahead: The cohorts of the next rounds, nearest first, as many as the method needs.
        population: All clients.
        lr_factor: This round's local learning rate relative to that of the first round; remembered updates are
            rescaled by it.
        secret: What noise is drawn from that protects clients, known to the server alone; None: from the seed, as in a
            simulation.

    Example:
        >>> from fedreuse import Cohort
        >>> cohort = Cohort(round_number=1, clients=(0, 3, 7), seed=101)
        >>> draw = cohort.rng("my purpose").random()
        >>> draw == Cohort(1, (0, 3, 7), 101).rng("my purpose").random()
        True
    """

    round_number: int
    clients: tuple[int, ...]
    seed: int
    look_ahead: tuple[tuple[int, ...], ...] = ()
    population: Population = field(default_factory=lambda: Population(np.zeros(0, np.int64)), compare=False)
    lr_factor: float = 1.0
    secret: bytes | None = field(default=None, compare=False, repr=False)

    def rng(self, purpose: str) -> np.random.Generator:
        """The server's stream for a purpose in this round."""
        return stream(self.seed, purpose, self.round_number)

    def noise(self, purpose: str, size: int) -> np.ndarray:
        """Standard normal numbers of this round from the secret, or, in a simulation, from the seed."""
        key = f"seed {self.seed}".encode() if self.secret is None else self.secret
        return normal_numbers(key, purpose, self.round_number, size)

    def rng_of(self, purpose: str, client: int) -> np.random.Generator:
        """A client's stream for a purpose in this round."""
        return stream(self.seed, purpose, self.round_number, client)
