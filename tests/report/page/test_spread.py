"""Error bars of the page: the range of few seeds, an interval from five on, proportions within their limits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.learning.metrics.metric import metrics
from fedreuse.report.gather import gather
from fedreuse.report.page.shown import _SHARES, Shown
from fedreuse.report.statistics.intervals import t_interval
from tests.report.runs import write_run


@pytest.fixture
def one(tmp_path: Path) -> Shown:
    write_run(tmp_path / "a")
    return Shown((), tuple(gather([tmp_path / "a"])))


def test_two_seeds_show_their_range_and_five_an_interval(one: Shown) -> None:
    assert one.spread([80.0, 60.0]) == (60.0, 80.0)  # Student's interval would be -57 to 197
    five = [60.0, 62.0, 61.0, 63.0, 64.0]
    assert one.spread(five) == pytest.approx(tuple(t_interval(five)))
    assert one.spread([70.0]) is None


def test_a_proportion_has_no_interval_beyond_its_limits(one: Shown) -> None:
    values = [99.9, 99.0, 100.0, 94.0, 99.8]
    assert t_interval(values).high > 100
    assert one.spread(values)[1] == 100.0
    assert one.spread(values, is_score=False)[1] > 100
    free = Shown((), (replace(one.results[0], metric="r2"),))
    assert free.limits is None


def test_the_limits_are_those_of_the_metrics() -> None:
    shares = {name for name in metrics.names() if metrics.get(name, "metric").is_share}
    assert shares == set(_SHARES)
