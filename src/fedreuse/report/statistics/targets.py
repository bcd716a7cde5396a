"""Costs to a target over seeds: runs that do not reach it are censored, never dropped."""

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
    """Cost of one run up to the target, or its total cost if it did not reach it (`is_reached` False)."""

    cost: float
    is_reached: bool


@dataclass(frozen=True)
class ToTarget:
    """Cost to a target over the seeds of one variant.

    `median` and its interval come from the Kaplan-Meier curve: None (an end: infinite) where too few runs reach the
    target. `restricted_mean` is the mean of the cost cut off at the horizon.
    """

    num_runs: int
    num_reached: int
    median: float | None
    median_interval: Interval | None
    restricted_mean: float
    restricted_interval: Interval | None
    horizon: float


def to_target(arrivals: Sequence[Arrival], horizon: float, confidence: float = 0.95) -> ToTarget:
    """Compute median and restricted mean of a cost (bytes, rounds, FLOPs, seconds) over seeds.

    Args:
        arrivals: One per seed.
        horizon: Cost at which all costs are cut off; the same for all compared variants (`horizon`).
        confidence: Confidence of both intervals, in (0, 1).

    Raises:
        ConfigError: A run ended before the horizon without reaching the target: its restricted cost is unknown.

    Example:
        >>> found = to_target([Arrival(3, True), Arrival(5, True), Arrival(8, False)], horizon=8)
        >>> found.num_reached, found.median, round(found.restricted_mean, 2)
        (2, 5.0, 5.33)

    """
    costs = np.array([run.cost for run in arrivals], dtype=np.float64)
    reached = np.array([run.is_reached for run in arrivals])
    cut = restricted(arrivals, horizon)
    median, interval = None, None
    if reached.any():
        curve = SurvfuncRight(costs, reached.astype(int))
        median = float(curve.quantile(0.5))
        with np.errstate(divide="ignore", invalid="ignore"):  # at the last step no run is left
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
    """Return the cost up to which every run was observed: the smallest of those that miss the target, else the largest.

    Example:
        >>> horizon([Arrival(3, True), Arrival(8, False), Arrival(9, True)])
        8.0

    """
    missed = [run.cost for run in arrivals if not run.is_reached]
    return float(min(missed) if missed else max(run.cost for run in arrivals))


def restricted(arrivals: Sequence[Arrival], horizon: float) -> list[float]:
    """Return min(cost, horizon) of every run, which is known exactly because no run is censored before the horizon.

    Differences of these are paired by seed like any other number.
    """
    early = [run.cost for run in arrivals if not run.is_reached and run.cost < horizon]
    require(
        not early,
        f"horizon must not exceed the cost of a run that missed the target, {min(early, default=0):g}",
        horizon,
    )
    return [float(min(run.cost, horizon)) for run in arrivals]
