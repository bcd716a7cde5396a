"""Frontier: points are the runs' own scores and bytes, and the front is what nobody beats."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest

from fedreuse.report.page.frontier import frontier, pareto
from fedreuse.report.page.shown import Shown
from fedreuse.report.statistics.intervals import t_interval

pytestmark = pytest.mark.slow  # the runs behind it


def test_the_front_by_hand() -> None:
    assert pareto([(3, 0.9), (1, 0.5), (2, 0.4), (2, 0.7), (4, 0.9), (1, 0.3)]) == [1, 3, 0]


def test_points_are_those_of_the_runs(shown: Shown) -> None:
    section = frontier(shown)
    found = section.figures[0].data["points"]["test/messages/up"]
    at, megabytes, scores = found["seeds"][7]
    run = shown.results[at]
    assert megabytes == pytest.approx(run.savings["messages"].up_bytes / 1e6, rel=1e-5)
    assert scores == pytest.approx(100 * run.test_score, rel=1e-5)
    variant, _, _, mean, ends = found["means"][0]
    observed = [100 * result.test_score for result in shown.variants[variant].results]
    assert mean == pytest.approx(fmean(observed), rel=1e-5)
    assert ends == pytest.approx(list(t_interval(observed)), rel=1e-4)
    assert "reuse" in section.figures[0].text
    assert section.tables[0].rows[1][0] == "reuse"


def test_sealed_runs_are_shown_by_validation_and_unfinished_ones_not_at_all(shown: Shown) -> None:
    sealed = Shown(shown.places, tuple(replace(result, test_score=None) for result in shown.results))
    assert list(frontier(sealed).figures[0].choices[0].options) == ["validation"]
    going = Shown(shown.places, tuple(replace(result, is_complete=False) for result in shown.results))
    assert frontier(going).figures == ()
