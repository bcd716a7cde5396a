"""Costs to a target when some runs never get there: censored, never dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, isnan

import numpy as np
from statsmodels.duration.survfunc import SurvfuncRight

from fedreuse.core.errors import require
from fedreuse.report.statistics.intervals import Interval, t_interval

__all__ = ["Arrival", "ToTarget", "horizon", "restricted", "to_target"]


@dataclass(frozen=True)
class Arrival:
    """What one run spent up to the target, or all it spent without getting there (`is_reached` False)."""

    cost: float
    is_reached: bool


@dataclass(frozen=True)
class ToTarget:
    """Over the seeds of one variant.

    `median` and its interval come from the Kaplan-Meier curve: None (an end: infinite) where the curve never falls so
    low, because too few runs arrived. `restricted_mean` is the mean of the cost cut off at the horizon.
    """

    num_runs: int
    num_reached: int
    median: float | None
    median_interval: Interval | None
    restricted_mean: float
    restricted_interval: Interval | None
    horizon: float


def to_target(arrivals: Sequence[Arrival], horizon: float, confidence: float = 0.95) -> ToTarget:
    """Median and restricted mean of a cost (bytes, rounds, FLOPs, seconds) over seeds.

    Args:
        arrivals: One per seed.
        horizon: Where costs are cut off; the same for all variants that are compared (`horizon`).
        confidence: Of both intervals, in (0, 1).

    Raises:
        ConfigError: A run that was cut off before the horizon without arriving: its restricted cost is unknown.

    Example:
        >>> found = to_target([Arrival(3, True), Arrival(5, True), Arrival(8, False)], horizon=8)
        >>> found.num_reached, found.median, round(found.restricted_mean, 2)
        (2, 5.0, 5.33)

    """
    costs = np.array([one.cost for one in arrivals], dtype=np.float64)
    reached = np.array([one.is_reached for one in arrivals])
    cut = restricted(arrivals, horizon)
    median, interval = None, None
    if reached.any():
        curve = SurvfuncRight(costs, reached.astype(int))
        median = float(curve.quantile(0.5))
        with np.errstate(divide="ignore", invalid="ignore"):  # at the last step, where nobody is left
            low, high = curve.quantile_ci(0.5, alpha=1 - confidence)
        interval = None if isnan(low) else Interval(float(low), float(high))
    return ToTarget(
        num_runs=len(arrivals),
        num_reached=int(reached.sum()),
        median=median if median is not None and isfinite(median) else None,
        median_interval=interval,
        restricted_mean=float(np.mean(cut)),
        restricted_interval=t_interval(cut, confidence),
        horizon=horizon,
    )


def horizon(arrivals: Sequence[Arrival]) -> float:
    """The largest cost up to which every run was watched: the smallest of those that never arrived, else the largest.

    Example:
        >>> horizon([Arrival(3, True), Arrival(8, False), Arrival(9, True)])
        8.0

    """
    missed = [one.cost for one in arrivals if not one.is_reached]
    return float(min(missed) if missed else max(one.cost for one in arrivals))


def restricted(arrivals: Sequence[Arrival], horizon: float) -> list[float]:
    """min(cost, horizon) of every run: observed exactly, since nobody leaves before the horizon.

    Differences of these pair by seed like any other number.
    """
    early = [one.cost for one in arrivals if not one.is_reached and one.cost < horizon]
    require(
        not early,
        f"horizon must not lie beyond a run that ended without arriving, at {min(early, default=0):g}",
        horizon,
    )
    return [float(min(one.cost, horizon)) for one in arrivals]
