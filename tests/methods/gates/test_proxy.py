"""The paper's gate: a falling threshold with a floor, then the quota."""

from __future__ import annotations

from math import exp

import pytest

from fedreuse.core.cohort import Cohort
from fedreuse.methods.gates.proxy import Proxy


def test_the_threshold_falls_to_its_floor() -> None:
    gate = Proxy()
    # rounds count from 1; 0.9116988 e^(-0.01 t) meets 0.8134931 at t = 11.4
    assert gate.threshold_in(1) == 0.9116988 * exp(-0.01)
    assert gate.threshold_in(11) > 0.8134931
    assert gate.threshold_in(12) == gate.threshold_in(90) == 0.8134931


def test_the_published_values_are_the_defaults() -> None:
    gate = Proxy()
    assert (gate.tau_start, gate.tau_floor, gate.decay) == (0.9116988, 0.8134931, 0.01)
    assert (gate.max_age, gate.quota, gate.batches, gate.batch) == (4, 0.3, 5, 64)
    plan = gate.plan
    assert (plan.num_batches, plan.batch_size, plan.is_deterministic) == (5, 64, False)


def test_at_the_threshold_is_fresh() -> None:
    gate, cohort = Proxy(tau_start=0.5, tau_floor=0.5, quota=0.0), Cohort(1, (0, 1, 2), seed=0)
    assert gate.choose({0: 0.5, 1: 0.4999, 2: 2.0}, {}, {}, cohort) == {0: "score", 2: "score"}


def test_the_quota_follows_the_scores() -> None:
    gate, cohort = Proxy(tau_start=3, tau_floor=3, quota=0.5), Cohort(1, (0, 1, 2, 3), seed=0)
    assert gate.choose({0: 0.1, 1: 0.7, 2: 0.3}, {}, {3: "age"}, cohort) == {1: "quota"}


@pytest.mark.parametrize("is_deterministic", [True, False])
def test_the_plan_carries_the_option(is_deterministic: bool) -> None:
    assert Proxy(deterministic=is_deterministic).plan.is_deterministic is is_deterministic
