"""The coin: one draw per client and round, of a stream of its own."""

from __future__ import annotations

import numpy as np

from fedreuse.core.cohort import Cohort
from fedreuse.methods.gates.random import Random


def test_certainties() -> None:
    cohort, ages = Cohort(2, (0, 1, 2), seed=0), {0: 1, 1: 1, 2: 1}
    assert Random(probability=0.0, quota=0.0).choose({}, ages, {}, cohort) == {}
    assert Random(probability=1.0).choose({}, ages, {}, cohort) == dict.fromkeys(range(3), "random")
    assert Random().plan is None


def test_draws_do_not_depend_on_who_else_is_there() -> None:
    gate = Random(probability=0.5, quota=0.0)
    for number in range(1, 30):
        cohort = Cohort(number, (0, 1, 2), seed=3)
        everybody = gate.choose({}, {0: 1, 1: 1, 2: 1}, {}, cohort)
        alone = gate.choose({}, {1: 1}, {}, cohort)
        assert (1 in everybody) == (1 in alone)


def test_the_rate_is_the_probability() -> None:
    gate = Random(probability=0.3, quota=0.0)
    rates = [
        len(gate.choose({}, dict.fromkeys(range(20), 1), {}, Cohort(t, tuple(range(20)), seed=1))) for t in range(200)
    ]
    # 4000 draws: sd of the rate is sqrt(0.3 * 0.7 / 4000) = 0.0072
    assert abs(np.sum(rates) / 4000 - 0.3) < 0.03


def test_the_quota_takes_the_smallest_draws() -> None:
    cohort, ages = Cohort(5, tuple(range(10)), seed=2), dict.fromkeys(range(10), 1)
    draws = {client: float(cohort.rng_of("random gate", client).random()) for client in range(10)}
    chosen = Random(probability=0.0, quota=0.3).choose({}, ages, {}, cohort)
    assert set(chosen) == set(sorted(draws, key=draws.get)[:3])
    assert set(chosen.values()) == {"quota"}
