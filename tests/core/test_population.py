"""Populations: the weights of the averages, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.core.population import Population

POPULATION = Population(np.array([10, 30, 0, 60]))


def test_ratio_weights_by_hand() -> None:
    assert (len(POPULATION), POPULATION.total_examples) == (4, 100)
    assert POPULATION.ratio_weights([0, 1]) == {0: 0.25, 1: 0.75}
    assert POPULATION.ratio_weights([3]) == {3: 1.0}


def test_unbiased_weights_by_hand() -> None:
    # N / m = 4 / 2, alpha = 0.1 and 0.3
    assert POPULATION.ht_weights([0, 1], 2) == pytest.approx({0: 0.2, 1: 0.6})
    assert POPULATION.share(3) == 0.6
    assert POPULATION.weights("ht", [0], 2) == POPULATION.ht_weights([0], 2)
    assert POPULATION.weights("ratio", [0, 3], 2) == POPULATION.ratio_weights([0, 3])


def test_a_cohort_without_a_single_example_has_weights_too() -> None:
    # an empty client trains zero steps and sends zeros: any weights will do, but they must exist
    assert POPULATION.ratio_weights([2]) == {2: 1.0}
    assert Population(np.zeros(3, np.int64)).ratio_weights([0, 2]) == {0: 0.5, 2: 0.5}


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40))
@settings(max_examples=50, deadline=None)
def test_ratio_weights_sum_to_one(examples: list[int]) -> None:
    weights = Population(np.array(examples)).ratio_weights(range(len(examples)))
    assert sum(weights.values()) == pytest.approx(1.0, abs=1e-12)


def test_unbiased_weights_sum_to_one_on_average() -> None:
    from itertools import combinations

    sums = [sum(POPULATION.ht_weights(pair, 2).values()) for pair in combinations(range(4), 2)]
    assert np.mean(sums) == pytest.approx(1.0)


def test_no_more_examples_count_than_the_bound() -> None:
    # 30, 10 and 60 of which 20 count: 20, 10, 20
    population = Population(np.array([30, 10, 60]), max_examples=20)
    assert population.ratio_weights([1, 2]) == {1: 1 / 3, 2: 2 / 3}
    assert population.share(2) == 0.4
    assert population.ht_weights([1], 1) == {1: 3 * 0.2}
    assert (population.total_examples, population.examples.tolist()) == (100, [30, 10, 60])  # what they really have
