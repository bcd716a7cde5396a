"""Rounds and seeds of a trial from the time that is left and the measured time of a round."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from fedreuse.core.errors import ConfigError

if TYPE_CHECKING:
    from fedreuse.studies.trial import Request

__all__ = ["DENSE", "LEAN", "Plan", "Timing", "fit_into"]

DENSE, LEAN = "dense FedAvg", "lean"
"""Names of the variants that every trial has."""

_ROUNDS, _FEWEST_ROUNDS, _SEEDS = 60, 5, 5
_SEARCH_SHARE, _SEARCH_ROUNDS = 0.15, (2, 12)
_RESERVE = 0.9
"""Share of the time that is planned; the rest is for reading, starting processes and the report."""
_OTHERS = 1.4
"""Time of a round of another method as a multiple of a dense one."""


@dataclass(frozen=True)
class Timing:
    """Measured seconds of a round on one core, by variant, and the number of rounds of the search.

    Args:
        seconds: Seconds of a round of dense FedAvg and of `lean`.
        search_rounds: Rounds for each learning rate; 0: there is no time to search.
    """

    seconds: Mapping[str, float]
    search_rounds: int

    @classmethod
    def of(cls, seconds: Mapping[str, float], total: float, num_rates: int) -> Timing:
        """Choose the rounds of the search from the seconds of a round and the seconds in all."""
        fewest, most = _SEARCH_ROUNDS
        per_round = num_rates * seconds[DENSE]
        rounds = min(most, int(_SEARCH_SHARE * total / per_round))
        is_affordable = fewest * per_round <= 2 * _SEARCH_SHARE * total
        return cls(dict(seconds), max(fewest, rounds) if is_affordable else 0)

    def cost(self, variants: tuple[str, ...]) -> float:
        """Return the seconds of one round of every variant, with all cores of this machine at work."""
        cores = len(os.sched_getaffinity(0))
        return sum(self.seconds.get(name, _OTHERS * self.seconds[DENSE]) for name in variants) / cores


@dataclass(frozen=True)
class Plan:
    """The runs of a trial.

    Args:
        lr: Learning rate.
        rounds: Rounds of every run.
        seeds: Number of seeds.
        variants: Names of the variants.
        budget: Budget of `lean`.
        wanted_budget: Budget that was asked for.
        score: Validation score of the search; None if there was no time for one.
        seconds: Expected time of all runs.
        wanted_seeds: Number of seeds if there is time.
    """

    lr: float
    rounds: int
    seeds: int
    variants: tuple[str, ...]
    budget: float
    wanted_budget: float
    score: float | None
    seconds: float
    wanted_seeds: int

    def __str__(self) -> str:
        """Return the plan in one line."""
        why = "no time for a search" if self.score is None else f"validation score {self.score:.4g}"
        return (
            f"lr {self.lr:g} ({why}), {self.rounds} rounds, {self.seeds} seeds, {len(self.variants)} variants, "
            f"lean at {self.budget:g} of the dense bytes, about {max(1, round(self.seconds))} s"
        )


def fit_into(
    seconds: float, timing: Timing, request: Request, variants: tuple[str, ...], lr: float, score: float | None
) -> Plan:
    """Choose rounds and seeds for the time that is left.

    60 rounds with 5 seeds if they fit; then fewer rounds; then 3 seeds, and at last one.

    Args:
        seconds: Time that is left.
        timing: Measured time of a round.
        request: Wishes; a number of seeds is kept.
        variants: Names of the variants.
        lr: Learning rate.
        score: Its validation score.

    Raises:
        ConfigError: Not even one seed of 5 rounds fits; the message names the minutes that are needed.
    """
    cost = timing.cost(variants)

    def rounds_of(seeds: int) -> int:
        return min(_ROUNDS, int(_RESERVE * seconds / (seeds * cost)))

    few = _FEWEST_ROUNDS
    wishes = [(request.seeds, few)] if request.seeds else [(_SEEDS, 20), (4, 20), (3, few), (2, few), (1, few)]
    for seeds, fewest in wishes:
        rounds = rounds_of(seeds)
        if rounds >= fewest:
            total = seeds * rounds * cost
            wanted = request.seeds or _SEEDS
            return Plan(lr, rounds, seeds, variants, request.budget, request.budget, score, total, wanted)
    wanted = request.seeds or 3
    needed = ceil((60 * request.minutes - max(0.0, seconds) + wanted * 20 * cost / _RESERVE) / 60)
    raise ConfigError(
        f"--minutes {request.minutes:g} is too short: one round of {len(variants)} variants takes {cost:.2g} s, so "
        f"{wanted} seeds of 20 rounds need about {needed} min; give --minutes {needed}, or less data"
    )
