"""Quantile: the highest scores train, whatever their level."""

from __future__ import annotations

from fedreuse.core.cohort import Cohort
from fedreuse.methods.gates.quantile import Quantile

COHORT = Cohort(2, (0, 1, 2, 3), seed=0)


def test_the_highest_share_trains() -> None:
    scores = {0: 0.01, 1: 0.03, 2: 0.02, 3: 0.03}
    # ceil(0.5 * 4) = 2; ties go to the smaller id
    assert Quantile(fraction=0.5, quota=0.0).choose(scores, {}, {}, COHORT) == {1: "score", 3: "score"}
    assert list(Quantile(fraction=0.25, quota=0.0).choose(scores, {}, {}, COHORT)) == [1]
    assert Quantile(fraction=0.0, quota=0.0).choose(scores, {}, {}, COHORT) == {}
    assert Quantile(fraction=1.0).choose(scores, {}, {}, COHORT) == dict.fromkeys((1, 3, 2, 0), "score")


def test_the_quota_comes_after() -> None:
    chosen = Quantile(fraction=0.25, quota=0.75).choose({0: 3.0, 1: 2.0, 2: 1.0, 3: 0.0}, {}, {}, COHORT)
    assert chosen == {0: "score", 1: "quota", 2: "quota"}


def test_nobody_scored_nobody_chosen() -> None:
    assert Quantile().choose({}, {}, {0: "age"}, COHORT) == {}
