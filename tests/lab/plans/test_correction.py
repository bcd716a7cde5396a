"""Holm and Bonferroni against numbers in print."""

import pytest

from fedreuse.lab.plans.correction import adjusted


@pytest.mark.slow
def test_holms_procedure_on_a_worked_example() -> None:
    # 4 x 0.005, then 3 x 0.01, then 2 x 0.03, which 0.04 may not fall below
    assert adjusted([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_bonferroni_multiplies_and_none_leaves_alone() -> None:
    assert adjusted([0.01, 0.4], "bonferroni") == pytest.approx([0.02, 0.8])
    assert adjusted([0.01, 0.4], "none") == [0.01, 0.4]
    assert adjusted([]) == []


@pytest.mark.slow
def test_a_test_that_was_not_possible_makes_no_other_easier() -> None:
    assert adjusted([0.01, None]) == [pytest.approx(0.02), None]
