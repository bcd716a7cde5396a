"""What robust rules share: roles apart, shares that sum to less than one, whole counters, parts of a model."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.model import Model
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, zeros
from fedreuse.methods.aggregators.aggregator import Contribution
from fedreuse.methods.aggregators.median import Median
from fedreuse.methods.aggregators.rows import Rows, aggregate_rows, num_bad, row_sum
from tests.methods.aggregators.numbers import NUMBER, ROUND, update


def mean(rows: Rows, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return row_sum(rows, shares), shares


def test_with_the_mean_for_a_rule_it_is_the_mean() -> None:
    # as test_mean: 1/4 * 8 + 3/4 * 1/2 * 4; statistics 1/4 * 8 + 3/8 * 4, whose shares sum to 5/8
    given = {0: Contribution(update(8.0), 0.25, 1.0, 0.25), 2: Contribution(update(4.0), 0.75, 0.5, 0.375, 2)}
    made = aggregate_rows(mean, given, NUMBER)
    assert made.direction.weights.values.tolist() == [3.5]
    assert made.direction.buffers.values.tolist() == pytest.approx([3.5], rel=1e-15)
    assert made.statistics.weights == {0: 0.25, 2: 0.375}


def test_where_nobody_trained_statistics_stand_still() -> None:
    made = aggregate_rows(mean, {0: Contribution(update(8.0), 1.0, 0.5, None, 1)}, NUMBER)
    assert made.direction.buffers.values.tolist() == [0.0]


def test_counters_stay_whole_and_sparse_or_partial_updates_are_filled_with_zeros() -> None:
    whole = Schema((TensorSpec("a", (2,)), TensorSpec("b", (1,))))
    counter = Schema((TensorSpec("seen", (1,), "int64"),))
    sparse = Tensors(whole, np.float32([6]), np.array([1]))
    partial = Tensors(Schema((TensorSpec("b", (1,)),)), np.float32([4]))
    given = {
        client: Contribution(Model(weights, zeros(Schema()), Tensors(counter, np.array([count]))), 0.5, 1.0, 0.5)
        for client, (weights, count) in enumerate(((sparse, 3), (partial, 4)))
    }
    made = Median().aggregate(given, ROUND, ModelSchema(whole, Schema(), counter))
    assert made.direction.weights.values.tolist() == [0.0, 3.0, 2.0]
    assert made.direction.counters.values.tolist() == [4]
    assert made.direction.counters.values.dtype == np.int64


def test_a_share_of_a_number_is_rounded_down_but_not_by_rounding_errors() -> None:
    assert [num_bad(0.29, 100), num_bad(0.2, 4), num_bad(0.2, 5)] == [29, 0, 1]
