"""Confidence intervals of a mean over few observations: Student's t, and the bootstrap (BCa)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from fedreuse.core.errors import require
from fedreuse.core.randomness import stream

__all__ = ["Interval", "bca_interval", "t_interval", "varies"]


class Interval(NamedTuple):
    """The two ends, in the unit of the observations."""

    low: float
    high: float


def t_interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Student's interval of the mean: exact if the observations are normal.

    Args:
        values: One observation per seed, for example paired differences.
        confidence: Probability in (0, 1) with which such intervals cover the mean.

    Returns:
        None for fewer than two observations: one says nothing of the spread. Observations that are all equal give an
        interval of no width.

    Example:
        >>> [round(end, 4) for end in t_interval([1.0, 2.0, 3.0])]  # 2 -+ 4.3027 / sqrt(3)
        [-0.4841, 4.4841]

    """
    _check(confidence)
    if len(values) < 2:
        return None
    if not varies(values):
        return Interval(float(values[0]), float(values[0]))
    found = stats.ttest_1samp(values, 0.0).confidence_interval(confidence)
    return Interval(float(found.low), float(found.high))


def bca_interval(
    values: Sequence[float], confidence: float = 0.95, seed: int = 0, num_resamples: int = 9999
) -> Interval | None:
    """Bootstrap interval of the mean, corrected for bias and acceleration (Efron, 1987).

    It assumes no distribution. With few observations it is too short (`fedreuse lab bench intervals` simulates by how
    much), so nothing is decided by it.

    Args:
        values: One observation per seed.
        confidence: Probability in (0, 1) that is aimed at.
        seed: Of the resampling; the same seed gives the same interval.
        num_resamples: How many means are drawn.

    Returns:
        None where the bootstrap has nothing to resample: fewer than two observations, or all of them equal.

    Example:
        >>> bca_interval([1.0, 2.0, 3.0, 4.0, 5.0]).high <= 5.0
        True

    """
    _check(confidence)
    if len(values) < 2 or not varies(values):
        return None
    data = np.asarray(values, dtype=np.float64)
    with warnings.catch_warnings():  # an interval that does not exist comes back as nan, which is said below
        warnings.simplefilter("ignore")
        found = stats.bootstrap(
            (data,),
            np.mean,
            n_resamples=num_resamples,
            confidence_level=confidence,
            method="BCa",
            rng=stream(seed, "bootstrap"),
        ).confidence_interval
    low, high = float(found.low), float(found.high)
    return Interval(low, high) if np.isfinite([low, high]).all() else None


def varies(values: Sequence[float]) -> bool:
    """Whether there is a spread to speak of: more than rounding of the largest observation."""
    data = np.asarray(values, dtype=np.float64)
    return bool(np.ptp(data) > 1e-12 * np.abs(data).max())


def _check(confidence: float) -> None:
    require(0 < confidence < 1, "confidence must be in (0, 1)", confidence)
