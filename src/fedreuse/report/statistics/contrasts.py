"""One contrast, seed by seed: the differences, what they say, and what they could have said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedreuse.core.errors import ConfigError
from fedreuse.report.statistics.hypotheses import Hypothesis, decision_interval, sign_flip_p, smallest_sign_flip_p, t_p
from fedreuse.report.statistics.intervals import Interval, bca_interval, t_interval
from fedreuse.report.statistics.power import detectable

__all__ = ["Assessment", "assess", "combined", "paired"]


@dataclass(frozen=True)
class Assessment:
    """What differences by seed say about a hypothesis; None where there is nothing to compute it from.

    `detectable` is what could have been found (see `power.detectable`), `smallest_sign_flip` the smallest p-value
    that so many seeds can give.
    """

    by_seed: Mapping[int, float]
    mean: float
    sd: float | None
    t: Interval | None
    decision: Interval | None
    bca: Interval | None
    t_p: float | None
    sign_flip_p: float
    smallest_sign_flip: float
    detectable: float | None


def paired(of: Mapping[int, float], against: Mapping[int, float]) -> dict[int, float]:
    """A - B for every seed; both must have the same seeds.

    Raises:
        ConfigError: A seed that only one of them has: a pair cannot be made up.

    Example:
        >>> paired({1: 0.9, 2: 0.8}, {1: 0.7, 2: 0.9})[1]
        0.20000000000000007

    """
    return combined([(1.0, of), (-1.0, against)])


def combined(terms: list[tuple[float, Mapping[int, float]]]) -> dict[int, float]:
    """A weighted sum of observations, seed by seed: any contrast of variants that were run with the same seeds."""
    seeds = set().union(*(by_seed for _, by_seed in terms))
    lonely = sorted(seed for seed in seeds if not all(seed in by_seed for _, by_seed in terms))
    if lonely:
        raise ConfigError(
            f"seeds {lonely} are not there for every variant of the contrast, so that no pairs can be made; run the "
            "missing ones, or leave these seeds out of the study"
        )
    return {seed: sum(weight * by_seed[seed] for weight, by_seed in terms) for seed in sorted(seeds)}


def assess(
    by_seed: Mapping[int, float],
    hypothesis: Hypothesis | None = None,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    num_tests: int = 1,
) -> Assessment:
    """Everything that is said about one contrast.

    Args:
        by_seed: The difference of each seed (`paired`).
        hypothesis: What is to be shown; the default asks for a difference in any direction.
        alpha: Level of the tests in (0, 1); the shown intervals have confidence 1 - alpha.
        power: Probability with which `detectable` would be found.
        num_tests: How many contrasts share alpha; `detectable` is that of the strictest step.

    Example:
        >>> said = assess({1: 0.02, 2: 0.01, 3: 0.03, 4: 0.02, 5: 0.02})
        >>> round(said.mean, 3), round(said.t_p, 4), said.sign_flip_p
        (0.02, 0.0032, 0.0625)

    """
    asked = hypothesis or Hypothesis()
    values = list(by_seed.values())
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Assessment(
        by_seed=dict(by_seed),
        mean=float(np.mean(values)),
        sd=sd,
        t=t_interval(values, 1 - alpha),
        decision=decision_interval(values, asked, alpha),
        bca=bca_interval(values, 1 - alpha),
        t_p=t_p(values, asked),
        sign_flip_p=sign_flip_p(values, asked),
        smallest_sign_flip=smallest_sign_flip_p(len(values), asked),
        detectable=detectable(sd, len(values), asked, alpha / num_tests, power) if sd else None,
    )
