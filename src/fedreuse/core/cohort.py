"""The clients selected for one round, the round's random streams, and which selected clients train in a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fedreuse.core.noise import normal_numbers
from fedreuse.core.population import Population
from fedreuse.core.randomness import stream

__all__ = ["Attendance", "Cohort"]


@dataclass(frozen=True)
class Cohort:
    """The clients of a round, those of the next rounds, and the round's random streams.

    Args:
        round_number: The round, from 1.
        clients: Ids of the selected clients, in ascending order.
        seed: The run's seed, from which every stream follows.
        look_ahead: The cohorts of the next rounds, nearest first; as many as `Needs.look_ahead` asks for.
        population: All clients.
        lr_factor: This round's local learning rate relative to that of the first round; cached updates are rescaled
            by it.
        secret: Key for noise that protects clients, known only to the server. None: noise is drawn from the seed, as
            in a simulation.
        busy: Of an asynchronous method, the clients with a request under way, and the round in which it was sent.

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
    busy: Mapping[int, int] = field(default_factory=dict)

    def rng(self, purpose: str) -> np.random.Generator:
        """Return the server's random stream for a purpose in this round."""
        return stream(self.seed, purpose, self.round_number)

    def noise(self, purpose: str, size: int) -> np.ndarray:
        """Return standard normal numbers for this round, drawn from the secret or, without one, from the seed."""
        key = f"seed {self.seed}".encode() if self.secret is None else self.secret
        return normal_numbers(key, purpose, self.round_number, size)

    def rng_of(self, purpose: str, client: int) -> np.random.Generator:
        """Return a client's random stream for a purpose in this round."""
        return stream(self.seed, purpose, self.round_number, client)


@dataclass(frozen=True)
class Attendance:
    """Which selected clients train in a run, as far as its schedule determines it.

    Args:
        trained: Clients that train, by round.
        remembered: Number of clients of which the server holds a state after the last round.
    """

    trained: tuple[frozenset[int], ...]
    remembered: int
