"""Simulated coverage of confidence intervals, and false-positive rates of tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fedreuse.core.errors import require
from fedreuse.core.randomness import stream
from fedreuse.report.statistics.hypotheses import Hypothesis, sign_flip_p, t_p
from fedreuse.report.statistics.intervals import bca_interval, t_interval

__all__ = ["DISTRIBUTIONS", "Rates", "simulate"]

_Draw = Callable[[np.random.Generator, int], np.ndarray]
DISTRIBUTIONS: Mapping[str, _Draw] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "skewed": lambda rng, size: rng.exponential(size=size) - 1.0,
    "heavy-tailed": lambda rng, size: rng.standard_t(3, size=size),
}
"""Distributions of differences with mean zero; the skewed and heavy-tailed ones violate the assumption of t."""

_RESAMPLES, _FLIPS = 999, 2**11


@dataclass(frozen=True)
class Rates:
    """Shares of the repetitions.

    `t`, `bca`: the interval covers the true mean. `t_claims`, `sign_flip_claims`: the test claims a difference at
    level 1 - confidence where there is none. `equivalence_claims`: equivalence is claimed, the true difference being on
    the margin.
    """

    distribution: str
    num_pairs: int
    repetitions: int
    t: float
    bca: float
    t_claims: float
    sign_flip_claims: float
    equivalence_claims: float


def simulate(
    distribution: str, num_pairs: int, repetitions: int = 2000, confidence: float = 0.95, seed: int = 1
) -> Rates:
    """Draw paired differences of mean zero repeatedly, and count coverage and false claims.

    Args:
        distribution: One of `DISTRIBUTIONS`.
        num_pairs: Seeds per study.
        repetitions: Number of studies; the standard error of a rate near 0.95 is 0.005 with 2,000 of them.
        confidence: Nominal coverage of the intervals, in (0, 1).
        seed: Seed of the simulation.

    Example:
        >>> simulate("normal", 5, repetitions=20).num_pairs
        5

    """
    require(distribution in DISTRIBUTIONS, f"one of {', '.join(DISTRIBUTIONS)} expected", distribution)
    rng = stream(seed, f"coverage, {distribution}", num_pairs)
    draw, alpha = DISTRIBUTIONS[distribution], 1 - confidence
    margin = 1.0
    hits = np.zeros(5)
    for number in range(repetitions):
        values = draw(rng, num_pairs).tolist()
        at_margin = [value + margin for value in values]
        t, bca = t_interval(values, confidence), bca_interval(values, confidence, number, _RESAMPLES)
        same = t_p(at_margin, Hypothesis("equivalence", margin=margin))
        hits += [
            t is not None and t.low <= 0 <= t.high,
            bca is not None and bca.low <= 0 <= bca.high,
            (t_p(values, Hypothesis()) or 1.0) <= alpha,
            sign_flip_p(values, Hypothesis(), number, _FLIPS) <= alpha,
            (1.0 if same is None else same) <= alpha,
        ]
    return Rates(distribution, num_pairs, repetitions, *(hits / repetitions).tolist())
