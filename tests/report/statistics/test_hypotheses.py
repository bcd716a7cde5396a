"""Tests of a difference against worked examples, statsmodels' TOST, and exact counts of sign flips."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from fedreuse.core.errors import ConfigError
from fedreuse.report.statistics.hypotheses import Hypothesis, decision_interval, sign_flip_p, smallest_sign_flip_p, t_p
from tests.statistics.published import MAIZE, SLEEP


def test_students_sleep_data_give_the_published_p() -> None:
    assert t_p(SLEEP, Hypothesis()) == pytest.approx(0.002833, abs=5e-7)
    assert t_p(SLEEP, Hypothesis(better="higher")) == pytest.approx(0.002833 / 2, abs=5e-7)
    assert t_p(SLEEP, Hypothesis(better="lower")) == pytest.approx(1 - 0.002833 / 2, abs=5e-7)


@pytest.mark.slow
def test_fishers_count_of_sign_flips() -> None:
    # Fisher (1935), section 21: 863 of 32,768 totals are at least 314, so 1,726 in both tails
    assert sign_flip_p(MAIZE, Hypothesis(better="higher")) == 863 / 32768
    assert sign_flip_p(MAIZE, Hypothesis()) == 1726 / 32768
    assert t_p(MAIZE, Hypothesis()) == pytest.approx(0.04970, abs=5e-6)


@pytest.mark.parametrize("margin", [0.5, 1.0, 2.5, 3.0])
def test_equivalence_is_the_tost_of_statsmodels(margin) -> None:
    p, lower, upper = ttost_paired(np.array(SLEEP), 0.0, -margin, margin)
    assert t_p(SLEEP, Hypothesis("equivalence", margin=margin)) == pytest.approx(p, rel=1e-12)
    assert p == max(lower[1], upper[1])


def test_tost_worked_by_hand() -> None:
    # Student's sleep data, bounds -0.5 and 0.5: the harder bound is the upper, t(9) = (1.58 - 0.5) / 0.3890 = 2.777
    assert t_p(SLEEP, Hypothesis("equivalence", margin=0.5)) == pytest.approx(stats.t.cdf(2.777, 9), abs=1e-4)


def test_non_inferiority_moves_the_null_to_the_margin() -> None:
    shifted = [value + 1.0 for value in SLEEP]
    assert t_p(SLEEP, Hypothesis("non_inferiority", 1.0, "higher")) == pytest.approx(
        t_p(shifted, Hypothesis(better="higher")), rel=1e-9
    )
    mirrored = [-value for value in SLEEP]
    for hypothesis, other in (
        (Hypothesis("non_inferiority", 1.0, "higher"), Hypothesis("non_inferiority", 1.0, "lower")),
        (Hypothesis("superiority", 1.0, "higher"), Hypothesis("superiority", 1.0, "lower")),
    ):
        assert t_p(SLEEP, hypothesis) == pytest.approx(t_p(mirrored, other), rel=1e-12)


@pytest.mark.parametrize(
    "hypothesis",
    [Hypothesis(), Hypothesis("equivalence", 2.4), Hypothesis("non_inferiority", 0.2, "higher"),
     Hypothesis("superiority", 0.7, "higher"), Hypothesis("superiority", 0.9, "higher")],
)  # fmt: skip
def test_the_decision_interval_tells_what_the_p_value_tells(hypothesis) -> None:
    for alpha in (0.001, 0.01, 0.05, 0.2):
        interval = decision_interval(SLEEP, hypothesis, alpha)
        assert interval is not None
        if hypothesis == Hypothesis():
            is_within = not interval.low <= 0 <= interval.high
        else:
            is_within = all(
                interval.low > value if side == "greater" else interval.high < value
                for value, side in hypothesis.questions
            )
        assert is_within == (t_p(SLEEP, hypothesis) < alpha)


@pytest.mark.parametrize(("num_pairs", "smallest"), [(3, 1 / 4), (5, 1 / 16), (6, 1 / 32), (10, 1 / 512)])
def test_the_smallest_p_of_sign_flips_is_attained(num_pairs, smallest) -> None:
    assert smallest_sign_flip_p(num_pairs, Hypothesis()) == smallest
    assert sign_flip_p([1.0 + number for number in range(num_pairs)], Hypothesis()) == smallest
    one_sided = Hypothesis("non_inferiority", 0.5, "higher")
    assert smallest_sign_flip_p(num_pairs, one_sided) == smallest / 2
    assert sign_flip_p([1.0 + number for number in range(num_pairs)], one_sided) == smallest / 2


def test_many_pairs_are_flipped_at_random_but_repeatably() -> None:
    values = [0.1 * (number % 7) - 0.2 for number in range(30)]
    assert sign_flip_p(values, Hypothesis(), num_flips=999) == sign_flip_p(values, Hypothesis(), num_flips=999)


def test_differences_that_do_not_vary_have_no_t() -> None:
    assert t_p([0.0] * 5, Hypothesis("equivalence", 0.1)) is None
    assert t_p([0.2], Hypothesis()) is None
    assert sign_flip_p([0.0] * 5, Hypothesis()) == 1.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"test": "equivalence"}, "margin must be above 0 for equivalence"),
        ({"test": "non_inferiority", "better": "higher"}, "margin must be above 0 for non_inferiority"),
        ({"test": "non_inferiority", "margin": 0.1}, "better must be higher or lower"),
        ({"test": "equivalence", "margin": 0.1, "better": "higher"}, "equivalence"),
        ({"margin": 0.1}, "better: higher or lower"),
        ({"margin": -0.1, "better": "higher"}, "at least 0"),
        ({"margin": float("nan")}, "at least 0"),
    ],
)
def test_impossible_hypotheses_are_refused(given, said) -> None:
    with pytest.raises(ConfigError, match=said):
        Hypothesis(**given)
