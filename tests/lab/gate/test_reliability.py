"""Repeated measurements and predictions, against examples in print."""

from __future__ import annotations

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.lab.gate.reliability import area_under_roc, rank_correlation, reliability

JUDGES = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
"""Shrout and Fleiss (1979), table 2: six targets, four judges."""


def test_the_intraclass_correlation_of_shrout_and_fleiss() -> None:
    found = reliability(JUDGES)
    assert found.within == pytest.approx(6.26, abs=5e-3)  # table 3: MSW 6.26, MSB 11.24
    assert found.between == pytest.approx((11.24 - 6.26) / 4, abs=5e-3)
    assert found.icc == pytest.approx(0.17, abs=5e-3)


def test_repeats_that_agree_and_subjects_that_do_not_differ() -> None:
    assert reliability([[1, 1], [2, 2]]).icc == 1.0
    assert reliability([[1, 1], [1, 1]]).icc is None
    below = reliability([[1, 2], [2, 1]])
    assert below.between < 0


@pytest.mark.parametrize("table", [[[1.0, 2.0]], [[1.0], [2.0]]])
def test_one_subject_or_one_repeat_says_nothing(table: list[list[float]]) -> None:
    with pytest.raises(ConfigError, match="two subjects with two repeats"):
        reliability(table)


def test_the_area_under_the_curve_counts_pairs() -> None:
    # of the pairs (0.35, 0.1), (0.35, 0.4), (0.8, 0.1), (0.8, 0.4) three are in order; a tie is half
    assert area_under_roc([0.1, 0.4, 0.35, 0.8], [False, False, True, True]) == 0.75
    assert area_under_roc([1.0, 1.0], [True, False]) == 0.5
    assert area_under_roc([1.0, 2.0], [True, True]) is None


def test_rank_correlation_needs_variation() -> None:
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == -1.0
    assert rank_correlation([1, 1, 1], [3, 2, 1]) is None
    assert rank_correlation([1, 2], [3, 2]) is None
