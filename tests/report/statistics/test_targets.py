"""Costs to a target against the remission times that Kaplan-Meier curves are taught with."""

import math

import pytest
from statsmodels.duration.survfunc import SurvfuncRight

from fedreuse.core.errors import ConfigError
from fedreuse.report.statistics.targets import Arrival, horizon, restricted, to_target
from tests.statistics.published import PLACEBO, SIX_MP

TREATED = [Arrival(week, bool(ended)) for week, ended in zip(*SIX_MP, strict=True)]
CONTROL = [Arrival(week, True) for week in PLACEBO]


def test_median_remissions_are_the_published_ones() -> None:
    treated, control = to_target(TREATED, 6), to_target(CONTROL, 23)
    assert (treated.num_runs, treated.num_reached, treated.median) == (21, 9, 23)
    assert treated.median_interval == (13, math.inf)
    assert (control.num_runs, control.num_reached, control.median) == (21, 21, 8)


def test_runs_that_never_arrive_are_not_dropped() -> None:
    arrivals = [Arrival(10, True), Arrival(20, True), *[Arrival(90, False)] * 3]
    found = to_target(arrivals, 90)
    assert (found.num_reached, found.median) == (2, None)
    assert found.restricted_mean == (10 + 20 + 3 * 90) / 5


def test_the_restricted_mean_is_the_area_under_the_curve() -> None:
    arrivals = [Arrival(3, True), Arrival(5, True), Arrival(5, True), Arrival(9, False), Arrival(12, True)]
    limit = horizon(arrivals)
    curve = SurvfuncRight([one.cost for one in arrivals], [int(one.is_reached) for one in arrivals])
    area, last, height = 0.0, 0.0, 1.0
    for time, probability in zip(curve.surv_times, curve.surv_prob, strict=True):
        area += height * (min(time, limit) - last)
        last, height = min(time, limit), probability
    assert limit == 9
    assert to_target(arrivals, limit).restricted_mean == pytest.approx(area)


def test_nobody_arrives() -> None:
    found = to_target([Arrival(7, False)] * 5, 7)
    assert (found.num_reached, found.median, found.median_interval, found.restricted_mean) == (0, None, None, 7)


def test_everybody_arrives_at_once() -> None:
    found = to_target([Arrival(7, True)] * 5, 7)
    assert (found.median, found.median_interval, found.restricted_interval) == (7, None, (7, 7))


def test_the_horizon_is_as_far_as_all_were_watched() -> None:
    assert horizon([Arrival(3, True), Arrival(8, False), Arrival(9, True), Arrival(20, False)]) == 8
    assert horizon([Arrival(3, True), Arrival(9, True)]) == 9
    assert restricted([Arrival(3, True), Arrival(8, False), Arrival(9, True)], 8) == [3, 8, 8]


def test_a_run_that_left_before_the_horizon_has_no_restricted_cost() -> None:
    with pytest.raises(ConfigError, match="8, got 10"):
        restricted([Arrival(8, False)], 10)
