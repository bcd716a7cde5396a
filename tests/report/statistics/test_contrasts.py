"""Pairs by seed, and what is said about them."""

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.report.statistics.contrasts import assess, combined, paired
from fedreuse.report.statistics.hypotheses import Hypothesis
from tests.statistics.published import SLEEP


def test_pairs_are_by_seed_whatever_the_order() -> None:
    assert paired({2: 5.0, 1: 3.0}, {1: 1.0, 2: 1.0}) == {1: 2.0, 2: 4.0}


def test_any_weighted_sum_is_a_contrast() -> None:
    assert combined([(0.5, {1: 2.0}), (0.5, {1: 4.0}), (-1.0, {1: 1.0})]) == {1: 2.0}


def test_a_seed_without_its_partner_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"seeds \[2, 3\]"):
        paired({1: 0.0, 2: 0.0}, {1: 0.0, 3: 0.0})


def test_everything_is_said_of_the_sleep_data() -> None:
    said = assess(dict(enumerate(SLEEP)), Hypothesis("equivalence", 3.0), alpha=0.05)
    assert said.mean == pytest.approx(1.58)
    assert said.sd == pytest.approx(1.2300, abs=5e-5)
    assert said.t == pytest.approx((0.7001142, 2.4598858), abs=5e-8)
    assert said.decision == pytest.approx((0.8669947, 2.2930053), abs=5e-8)  # 90 %, as TOST decides
    assert said.t_p is not None
    assert said.t_p < 0.05
    assert said.smallest_sign_flip == 1 / 1024
    assert list(said.by_seed.values()) == SLEEP


def test_more_tests_make_what_can_be_found_larger() -> None:
    alone, among = assess({1: 0.0, 2: 1.0, 3: 2.0}), assess({1: 0.0, 2: 1.0, 3: 2.0}, num_tests=4)
    assert alone.detectable is not None
    assert among.detectable is not None
    assert alone.detectable < among.detectable


def test_equal_differences_say_so_instead_of_dividing_by_zero() -> None:
    said = assess(dict.fromkeys(range(5), 0.0), Hypothesis("equivalence", 0.01))
    assert (said.t, said.t_p, said.bca, said.detectable) == ((0.0, 0.0), None, None, None)
    assert said.sign_flip_p == 1 / 32


def test_one_seed_says_no_more_than_its_difference() -> None:
    said = assess({7: 0.25})
    assert said.mean == 0.25
    assert said.sd is said.t is said.bca is said.t_p is said.detectable is None
