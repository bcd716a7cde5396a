"""Bucketing by hand and against its definition, around other rules."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError
from fedreuse.methods.aggregators.bucketing import Bucketing
from fedreuse.methods.aggregators.krum import Krum
from fedreuse.methods.aggregators.mean import Mean
from fedreuse.methods.aggregators.median import Median
from tests.methods.aggregators.numbers import NUMBER, ROUND, contributions, round_of, vectors
from tests.references import robust


@pytest.mark.parametrize("seed", range(5))
def test_by_hand(seed: int) -> None:
    # of three buckets one has the mean 50.5, in any order; the others have the mean 1
    given, cohort = contributions(1.0, 1.0, 1.0, 1.0, 1.0, 100.0), Cohort(1, tuple(range(6)), seed)
    made = Bucketing(2, Median()).aggregate(given, cohort, NUMBER)
    assert made.direction.weights.values.tolist() == [1.0]
    assert made.direction.buffers.values.tolist() == pytest.approx([1.0], rel=1e-15)
    assert made.statistics.weights == pytest.approx(dict.fromkeys(range(6), 1 / 6), rel=1e-15)


def test_a_bucket_is_kept_or_left_out_as_a_whole() -> None:
    given, cohort = contributions(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 100.0), Cohort(1, tuple(range(8)), 4)
    made = Bucketing(2, Krum(0.25)).aggregate(given, cohort, NUMBER)
    assert made.direction.weights.values.tolist() == [1.0]
    assert sorted(made.statistics.weights.values()) == [0.5, 0.5]
    assert made.verdicts == {client: "left out by krum" for client in given if client not in made.statistics.weights}
    assert 7 in made.verdicts


@pytest.mark.parametrize("size", [2, 3, 4])
def test_against_its_definition(size: int) -> None:
    matrix, shares = round_of(31, size=9)
    given, schema = vectors(matrix, shares)
    order = ROUND.rng("bucketing").permutation(9).tolist()
    made = Bucketing(size, Median()).aggregate(given, ROUND, schema)
    wanted = robust.median(robust.bucketing(matrix, order, size))
    np.testing.assert_allclose(made.direction.weights.values, wanted, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 4, 7, 50])
def test_around_a_mean_it_is_the_plain_mean(size: int) -> None:
    given = contributions(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 14.0)
    made = Bucketing(size, Mean()).aggregate(given, ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == pytest.approx([5.0], rel=1e-14)
    assert made.direction.buffers.values.tolist() == pytest.approx([5.0], rel=1e-14)


def test_buckets_of_one_are_the_inner_rule() -> None:
    matrix, _ = round_of(37)
    given, schema = vectors(matrix, np.full(7, 1 / 7))
    inner = Krum(0.2).aggregate(given, ROUND, schema)
    made = Bucketing(1, Krum(0.2)).aggregate(given, ROUND, schema)
    np.testing.assert_array_equal(made.direction.weights.values, inner.direction.weights.values)
    assert made.statistics.weights == inner.statistics.weights
    assert made.verdicts == inner.verdicts


def test_reused_clients_are_in_buckets_without_their_statistics() -> None:
    given = contributions(1.0, 3.0, 8.0, 8.0, decays={2: 0.5, 3: 0.5})
    made = Bucketing(2, Mean()).aggregate(given, ROUND, NUMBER)
    assert made.direction.weights.values.tolist() == pytest.approx([(1 + 3 + 4 + 4) / 4], rel=1e-15)
    assert made.direction.buffers.values.tolist() == pytest.approx([2.0], rel=1e-15)


def test_buckets_change_from_round_to_round_and_repeat_with_the_seed() -> None:
    matrix, shares = round_of(41, size=12)
    given, schema = vectors(matrix, shares)
    one, again, next_round = (
        Bucketing(3, Median()).aggregate(given, Cohort(number, tuple(range(12)), 5), schema).direction.weights.values
        for number in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, again)
    assert (one != next_round).any()


def test_the_range() -> None:
    with pytest.raises(ConfigError, match=r"bucketing\.size must be at least 1"):
        Bucketing(size=0)
