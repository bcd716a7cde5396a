"""Models by role: differences, sums, and the guard of variances."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.model import Model, apply, combine, difference, from_groups, to_groups
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal

SCHEMA = ModelSchema(
    Schema((TensorSpec("w", (3,)),)),
    Schema((TensorSpec("mean", (2,), role="buffer"), TensorSpec("var", (2,), role="buffer", is_positive=True))),
    Schema((TensorSpec("n", (), "int64", "counter"),)),
)


def model(weights: list[float], buffers: list[float], counter: int) -> Model:
    return Model(
        Tensors(SCHEMA.weights, np.array(weights, np.float32)),
        Tensors(SCHEMA.buffers, np.array(buffers, np.float32)),
        Tensors(SCHEMA.counters, np.array([counter])),
    )


BEFORE = model([1, 2, 3], [0, 0, 1, 1], 10)
AFTER = model([2, 2, 5], [1, -1, 0.5, 2], 13)


def test_the_schema_is_that_of_the_parts() -> None:
    assert BEFORE.schema == SCHEMA


def test_a_difference_and_its_application() -> None:
    update = difference(AFTER, BEFORE)
    np.testing.assert_array_equal(update.weights.values, [1, 0, 2])
    np.testing.assert_array_equal(update.buffers.values, [1, -1, -0.5, 1])
    assert update.counters.values.tolist() == [3]
    moved, num_kept = apply(BEFORE, update)
    assert num_kept == 0
    for one, other in (
        (moved.weights, AFTER.weights),
        (moved.buffers, AFTER.buffers),
        (moved.counters, AFTER.counters),
    ):
        assert is_equal(one, other)


def test_a_weighted_sum_by_role() -> None:
    total = combine([(0.25, BEFORE), (0.75, AFTER)], SCHEMA)
    np.testing.assert_array_equal(total.weights.values, [1.75, 2, 4.5])
    # 0.25 * 10 + 0.75 * 13 = 12.25 -> 12
    assert total.counters.values.tolist() == [12]


@pytest.mark.parametrize(
    ("step", "wanted", "num_kept"),
    [
        ([0, 0, -0.5, 0], [0, 0, 0.5, 1], 0),
        ([0, 0, -1, 0], [0, 0, 1, 1], 1),  # zero is not a variance
        ([-5, -5, -2, -3], [-5, -5, 1, 1], 2),  # a mean may be negative
        ([0, 0, np.nan, 1], [0, 0, 1, 2], 1),
    ],
)
def test_a_variance_stays_positive(step: list[float], wanted: list[float], num_kept: int) -> None:
    moved, count = apply(BEFORE, model([0, 0, 0], step, 0))
    np.testing.assert_array_equal(moved.buffers.values, wanted)
    assert count == num_kept


def test_groups_there_and_back() -> None:
    groups = to_groups(BEFORE, "model")
    assert list(groups) == ["model", "buffers", "counters"]
    again = from_groups(groups, "model", SCHEMA)
    assert again.weights is BEFORE.weights
    assert again.counters is BEFORE.counters


def test_what_is_empty_does_not_travel_and_what_is_absent_is_zero() -> None:
    bare = ModelSchema(SCHEMA.weights)
    small = Model(
        BEFORE.weights, Tensors(bare.buffers, np.empty(0, np.float32)), Tensors(bare.counters, np.empty(0, np.float32))
    )
    assert list(to_groups(small, "update")) == ["update"]
    again = from_groups({"update": BEFORE.weights}, "update", SCHEMA)
    np.testing.assert_array_equal(again.buffers.values, np.zeros(4))
    assert again.counters.values.tolist() == [0]


def test_a_sparse_update_moves_what_it_holds() -> None:
    sparse = Tensors(SCHEMA.weights, np.array([5], np.float32), np.array([1], np.int32))
    moved, _ = apply(BEFORE, Model(sparse, difference(BEFORE, BEFORE).buffers, difference(BEFORE, BEFORE).counters))
    np.testing.assert_array_equal(moved.weights.values, [1, 7, 3])
