"""Contrasts: differences by seed with intervals, p-values and detectable effect."""

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
    """Statistics of differences by seed for a hypothesis; None where they cannot be computed.

    `detectable` is the effect that the test could detect (see `power.detectable`), `smallest_sign_flip` the smallest
    p-value possible with this many seeds.
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
    """Return A - B for every seed; both must have the same seeds.

    Raises:
        ConfigError: Only one of them has a seed.

    Example:
        >>> paired({1: 0.9, 2: 0.8}, {1: 0.7, 2: 0.9})[1]
        0.20000000000000007

    """
    return combined([(1.0, of), (-1.0, against)])


def combined(terms: list[tuple[float, Mapping[int, float]]]) -> dict[int, float]:
    """Return a weighted sum of observations by seed: any contrast of variants with the same seeds."""
    seeds = set().union(*(by_seed for _, by_seed in terms))
    unpaired = sorted(seed for seed in seeds if not all(seed in by_seed for _, by_seed in terms))
    if unpaired:
        raise ConfigError(
            f"seeds {unpaired} do not exist for every variant of the contrast, so they cannot be paired; run the "
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
    """Compute interval, p-values and detectable effect of one contrast.

    Args:
        by_seed: The difference of each seed (`paired`).
        hypothesis: The hypothesis to test; default: a difference in any direction.
        alpha: Level of the tests in (0, 1); the shown intervals have confidence 1 - alpha.
        power: Probability with which `detectable` is detected, in (0, 1).
        num_tests: Number of contrasts that share alpha; `detectable` is that of the strictest step.

    Example:
        >>> found = assess({1: 0.02, 2: 0.01, 3: 0.03, 4: 0.02, 5: 0.02})
        >>> round(found.mean, 3), round(found.t_p, 4), found.sign_flip_p
        (0.02, 0.0032, 0.0625)

    """
    tested = hypothesis or Hypothesis()
    values = list(by_seed.values())
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Assessment(
        by_seed=dict(by_seed),
        mean=float(np.mean(values)),
        sd=sd,
        t=t_interval(values, 1 - alpha),
        decision=decision_interval(values, tested, alpha),
        bca=bca_interval(values, 1 - alpha),
        t_p=t_p(values, tested),
        sign_flip_p=sign_flip_p(values, tested),
        smallest_sign_flip=smallest_sign_flip_p(len(values), tested),
        detectable=detectable(sd, len(values), tested, alpha / num_tests, power) if sd else None,
    )
