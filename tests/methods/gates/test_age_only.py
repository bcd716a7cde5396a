"""Age alone: nobody is asked, the oldest fill the quota."""

from __future__ import annotations

from fedreuse.core.cohort import Cohort
from fedreuse.methods.gates.age_only import AgeOnly

COHORT = Cohort(9, (0, 1, 2, 3, 4), seed=0)


def test_the_oldest_fill_the_quota() -> None:
    gate = AgeOnly(max_age=4, quota=0.4)
    ages = {0: 1, 1: 3, 2: 2, 3: 3, 4: 1}
    # ceil(0.4 * 5) = 2: both of age 3
    assert gate.choose({}, ages, {}, COHORT) == {1: "quota", 3: "quota"}
    assert gate.choose({}, {0: 1, 4: 1}, {1: "age"}, COHORT) == {0: "quota"}


def test_nobody_is_asked() -> None:
    assert AgeOnly().plan is None


def test_scores_do_not_matter() -> None:
    gate = AgeOnly(quota=0.0)
    assert gate.choose({0: 2.0}, {0: 1}, {}, COHORT) == {}
