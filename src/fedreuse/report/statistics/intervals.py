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
    """Both ends of an interval, in the unit of the observations."""

    low: float
    high: float


def t_interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Return Student's confidence interval of the mean: exact if the observations are normal.

    Args:
        values: One observation per seed, for example paired differences.
        confidence: Probability in (0, 1) with which such intervals cover the mean.

    Returns:
        None for fewer than two observations, which have no spread. Observations that are all equal give an interval
        of zero width.

    Example:
        >>> [round(end, 4) for end in t_interval([1.0, 2.0, 3.0])]  # 2 -+ 4.3027 / sqrt(3)
        [-0.4841, 4.4841]

    """
    _check(confidence)
    if len(values) < 2:
        return None
    if not varies(values):
        return Interval(float(values[0]), float(values[0]))
    ends = stats.ttest_1samp(values, 0.0).confidence_interval(confidence)
    return Interval(float(ends.low), float(ends.high))


def bca_interval(
    values: Sequence[float], confidence: float = 0.95, seed: int = 0, num_resamples: int = 9999
) -> Interval | None:
    """Return the bootstrap interval of the mean, corrected for bias and acceleration (Efron, 1987).

    It assumes no distribution. With few observations it is too short (`fedreuse lab bench intervals` simulates by how
    much), so no decision is based on it.

    Args:
        values: One observation per seed.
        confidence: Nominal coverage, in (0, 1).
        seed: Seed of the resampling; the same seed gives the same interval.
        num_resamples: Number of resampled means.

    Returns:
        None for fewer than two observations, or if all of them are equal.

    Example:
        >>> bca_interval([1.0, 2.0, 3.0, 4.0, 5.0]).high <= 5.0
        True

    """
    _check(confidence)
    if len(values) < 2 or not varies(values):
        return None
    data = np.asarray(values, dtype=np.float64)
    with warnings.catch_warnings():  # an undefined interval is nan, handled below
        warnings.simplefilter("ignore")
        ends = stats.bootstrap(
            (data,),
            np.mean,
            n_resamples=num_resamples,
            confidence_level=confidence,
            method="BCa",
            rng=stream(seed, "bootstrap"),
        ).confidence_interval
    low, high = float(ends.low), float(ends.high)
    return Interval(low, high) if np.isfinite([low, high]).all() else None


def varies(values: Sequence[float]) -> bool:
    """Return True if the spread exceeds the rounding error of the largest observation."""
    data = np.asarray(values, dtype=np.float64)
    return bool(np.ptp(data) > 1e-12 * np.abs(data).max())


def _check(confidence: float) -> None:
    require(0 < confidence < 1, "confidence must be in (0, 1)", confidence)
