"""Intervals against published numbers and against what can be worked out by hand."""

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.report.statistics.intervals import Interval, bca_interval, t_interval, varies
from tests.statistics.published import MAIZE, SLEEP


def test_students_sleep_data_give_the_published_interval() -> None:
    interval = t_interval(SLEEP)
    assert interval is not None
    assert interval == pytest.approx((0.7001142, 2.4598858), abs=5e-8)  # R: t.test(extra ~ group, paired = TRUE)


def test_darwins_maize_gives_the_interval_of_fisher() -> None:
    # Fisher (1935), section 17: mean 20.93 eighths of an inch, standard error 9.746, t(14) at 5 % is 2.145
    assert t_interval(MAIZE) == pytest.approx((20.933 - 2.1448 * 9.7455, 20.933 + 2.1448 * 9.7455), abs=2e-3)


def test_a_wider_promise_is_a_wider_interval() -> None:
    low, high = t_interval(SLEEP, 0.99), t_interval(SLEEP, 0.9)
    assert low is not None
    assert high is not None
    assert low.low < high.low < high.high < low.high


def test_one_observation_has_no_interval_and_equal_ones_have_no_width() -> None:
    assert t_interval([0.3]) is None
    assert bca_interval([0.3]) is None
    assert t_interval([0.3] * 5) == Interval(0.3, 0.3)
    assert bca_interval([0.3] * 5) is None


def test_rounding_is_no_variation() -> None:
    assert not varies([0.1 + 0.2, 0.3])
    assert not varies([0.0, 0.0])
    assert varies([0.0, 1e-9])


def test_the_bootstrap_is_repeatable_and_stays_within_the_data() -> None:
    first, again, other = bca_interval(MAIZE), bca_interval(MAIZE), bca_interval(MAIZE, seed=1)
    assert first == again != other
    assert first is not None
    assert min(MAIZE) < first.low < 20.93 < first.high < max(MAIZE)


def test_the_bootstrap_follows_the_skew() -> None:
    skewed = [0.0, 0.1, 0.2, 0.3, 5.0]
    interval, mean = bca_interval(skewed), sum(skewed) / 5
    assert interval is not None
    assert interval.high - mean > mean - interval.low


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
def test_a_confidence_is_a_share(confidence) -> None:
    with pytest.raises(ConfigError, match=r"confidence must be in \(0, 1\)"):
        t_interval(SLEEP, confidence)
