"""Reliability of repeated measurements, and quality of predictions: ICC, area under ROC, rank correlation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from fedreuse.core.errors import require
from fedreuse.report.statistics.intervals import varies

__all__ = ["Reliability", "area_under_roc", "rank_correlation", "reliability"]


@dataclass(frozen=True)
class Reliability:
    """Variance components of a one-way design, and the share that is between subjects (the intraclass correlation)."""

    between: float
    within: float
    icc: float | None


def reliability(measurements: Sequence[Sequence[float]]) -> Reliability:
    """Compute the intraclass correlation ICC(1,1) of Shrout and Fleiss (1979).

    Args:
        measurements: One row per subject (a client), with the same number of repeats, at least two.

    Returns:
        The variance between subjects (negative if repeats differ more than subjects do), the variance within, and
        (MSB - MSW) / (MSB + (k - 1) MSW); None where nothing varies.

    Example:
        >>> found = reliability([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
        >>> found.within, found.icc
        (0.0, 1.0)
    """
    table = np.asarray(measurements, dtype=np.float64)
    require(table.ndim == 2 and min(table.shape) > 1, "two subjects with two repeats each expected", table.shape)
    repeats = table.shape[1]
    within = float(table.var(axis=1, ddof=1).mean())
    between_square = float(repeats * table.mean(axis=1).var(ddof=1))
    total = between_square + (repeats - 1) * within
    return Reliability(
        (between_square - within) / repeats, within, (between_square - within) / total if total else None
    )


def area_under_roc(scores: Sequence[float], is_harmful: Sequence[bool]) -> float | None:
    """Return the probability that a harmful case scores above a harmless one; 0.5 is chance.

    Returns:
        None if all cases are harmful or all are harmless.

    Example:
        >>> area_under_roc([0.1, 0.4, 0.35, 0.8], [False, False, True, True])
        0.75
    """
    harmful = [score for score, harms in zip(scores, is_harmful, strict=True) if harms]
    harmless = [score for score, harms in zip(scores, is_harmful, strict=True) if not harms]
    if not harmful or not harmless:
        return None
    return float(stats.mannwhitneyu(harmful, harmless).statistic) / (len(harmful) * len(harmless))


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return Spearman's rho; None if one of the two does not vary, or for fewer than three pairs.

    Example:
        >>> round(rank_correlation([1, 2, 3, 4], [2, 1, 4, 3]), 2)
        0.6
    """
    if len(left) < 3 or not varies(left) or not varies(right):
        return None
    return float(stats.spearmanr(left, right).statistic)
