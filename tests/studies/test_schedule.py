"""Rounds and seeds from the time that is left."""

from __future__ import annotations

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.studies import schedule
from fedreuse.studies.schedule import DENSE, LEAN, Timing, fit_into
from fedreuse.studies.trial import Request

VARIANTS = (DENSE, LEAN)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule.os, "sched_getaffinity", lambda _: {0, 1})


def timing(dense: float, lean: float) -> Timing:
    return Timing.of({DENSE: dense, LEAN: lean}, 1200, 4)


def test_the_cost_is_shared_by_the_cores_and_other_methods_are_estimated() -> None:
    assert timing(1.0, 2.0).cost(VARIANTS) == 1.5
    assert timing(1.0, 2.0).cost((*VARIANTS, "DG-FedReuse")) == pytest.approx(2.2)


@pytest.mark.parametrize(
    ("seconds", "rounds", "seeds"),
    [(1000, 60, 5), (300, 36, 5), (140, 21, 4), (100, 20, 3), (16, 9, 1), (25, 5, 3)],
)
def test_five_seeds_of_sixty_rounds_then_fewer(seconds: float, rounds: int, seeds: int) -> None:
    plan = fit_into(seconds, timing(1.0, 2.0), Request("v.csv"), VARIANTS, 0.03, 0.8)
    assert (plan.rounds, plan.seeds) == (rounds, seeds)
    assert plan.seconds <= 0.9 * seconds
    assert plan.wanted_seeds == 5


def test_wanted_seeds_are_kept() -> None:
    plan = fit_into(1000, timing(1.0, 2.0), Request("v.csv", seeds=10), VARIANTS, 0.03, None)
    assert (plan.rounds, plan.seeds, plan.wanted_seeds) == (60, 10, 10)
    assert "no time for a search" in str(plan)


def test_too_little_time_names_the_minutes() -> None:
    with pytest.raises(ConfigError, match=r"--minutes 0\.1 is too short.*3 seeds of 20 rounds.*give --minutes 2"):
        fit_into(5, timing(1.0, 2.0), Request("v.csv", minutes=0.1), VARIANTS, 0.03, 0.8)


def test_the_search_takes_a_share_of_the_time() -> None:
    assert timing(0.01, 0.01).search_rounds == 12
    assert timing(5, 5).search_rounds == 9
    assert timing(40, 40).search_rounds == 2
    assert timing(100, 100).search_rounds == 0
