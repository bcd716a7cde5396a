"""Arithmetic on flat vectors: sparse and dense give the same bits, and nothing can be written to."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.core import tensors as tensors_module
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import (
    Tensors,
    add,
    distance,
    dot,
    from_arrays,
    is_equal,
    is_finite,
    pick,
    scale,
    squares,
    sub,
    to_arrays,
    to_dense,
    weighted_sum,
    zeros,
)

SCHEMA = Schema((TensorSpec("a", (2, 2)), TensorSpec("b", (3,))))
COUNTERS = Schema((TensorSpec("n", (), "int64", "counter"), TensorSpec("m", (1,), "int64", "counter")))


def dense(*numbers: float) -> Tensors:
    return Tensors(SCHEMA, np.array(numbers, np.float32))


def sparse(index: list[int], numbers: list[float]) -> Tensors:
    return Tensors(SCHEMA, np.array(numbers, np.float32), np.array(index, np.int32))


ONE = dense(1, 2, 3, 4, 5, 6, 7)
SOME = sparse([1, 4], [10, -20])


def test_tensors_by_name() -> None:
    np.testing.assert_array_equal(ONE["a"], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(ONE["b"], [5, 6, 7])
    np.testing.assert_array_equal(SOME["a"], [[0, 10], [0, 0]])
    with pytest.raises(KeyError):
        ONE["c"]


def test_nothing_can_be_written_to() -> None:
    source = np.arange(7, dtype=np.float32)
    tensors = Tensors(SCHEMA, source)
    for array in (tensors.values, tensors["a"], SOME.values, SOME.index, to_dense(SOME).values):
        with pytest.raises(ValueError, match="read-only"):
            array[..., 0] = 9
    source[0] = 9  # the owner may still write: freezing costs no copy
    assert tensors.values[0] == 9


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected 7 values of float32, got float32 \(6,\)"):
        dense(1, 2, 3, 4, 5, 6)
    with pytest.raises(ValueError, match="expected 7 values of float32, got float64"):
        Tensors(SCHEMA, np.zeros(7))
    with pytest.raises(ValueError, match="expected 1 values"):
        Tensors(SCHEMA, np.zeros(2, np.float32), np.zeros(1, np.int32))
    with pytest.raises(ValueError, match=r"b: shape \(3,\) expected, got \(2,\)"):
        from_arrays(SCHEMA, {"a": np.zeros((2, 2)), "b": np.zeros(2)})


def test_arrays_there_and_back() -> None:
    assert is_equal(from_arrays(SCHEMA, to_arrays(ONE)), ONE)
    assert is_equal(from_arrays(SCHEMA, to_arrays(SOME)), SOME)


def test_sums_by_hand() -> None:
    np.testing.assert_array_equal(add(ONE, SOME).values, [1, 12, 3, 4, -15, 6, 7])
    np.testing.assert_array_equal(sub(ONE, SOME).values, [1, -8, 3, 4, 25, 6, 7])
    np.testing.assert_array_equal(add(SOME, ONE).values, [1, 12, 3, 4, -15, 6, 7])
    np.testing.assert_array_equal(scale(ONE, 0.5).values, [0.5, 1, 1.5, 2, 2.5, 3, 3.5])
    assert scale(SOME, 2).index is SOME.index
    # 2 * 10 - 5 * 20
    assert dot(ONE, SOME) == -80.0


def test_arithmetic_keeps_the_precision() -> None:
    for result in (add(ONE, SOME), sub(ONE, ONE), scale(ONE, 0.1), weighted_sum([(0.1, ONE)], SCHEMA)):
        assert result.values.dtype == np.float32


def test_a_part_alone() -> None:
    part = pick(ONE, ("b",))
    assert [spec.name for spec in part.schema] == ["b"]
    np.testing.assert_array_equal(part.values, [5, 6, 7])
    np.testing.assert_array_equal(pick(SOME, ("b",)).values, [-20, 0, 0])
    assert pick(ONE, ("a", "b")) is ONE


def test_a_weighted_sum_by_hand() -> None:
    # 0.25 * 1..7 + 0.5 * (10 at 1, -20 at 4)
    total = weighted_sum([(0.25, ONE), (0.5, SOME)], SCHEMA)
    np.testing.assert_array_equal(total.values, [0.25, 5.5, 0.75, 1.0, -8.75, 1.5, 1.75])
    assert is_equal(weighted_sum([], SCHEMA), zeros(SCHEMA))


def test_integers_are_rounded_half_to_even() -> None:
    # 0.5 * 5 = 2.5 -> 2; 0.5 * 7 = 3.5 -> 4
    total = weighted_sum([(0.5, Tensors(COUNTERS, np.array([5, 7])))], COUNTERS)
    assert total.values.tolist() == [2, 4]
    assert total.values.dtype == np.int64


def test_a_part_leaves_the_rest_untouched() -> None:
    total = weighted_sum([(1.0, ONE), (2.0, pick(ONE, ("b",))), (1.0, pick(SOME, ("b",)))], SCHEMA)
    np.testing.assert_array_equal(total.values, [1, 2, 3, 4, 15 - 20, 18, 21])


def test_bits_not_values_are_compared() -> None:
    nan = dense(*[np.nan] * 7)
    assert is_equal(nan, dense(*[np.nan] * 7))
    assert not is_equal(zeros(SCHEMA), scale(zeros(SCHEMA), -1))
    assert not is_equal(ONE, Tensors(Schema((TensorSpec("c", (7,)),)), ONE.values))
    assert not is_finite(nan)
    assert not is_finite(sparse([0], [np.inf]))
    assert is_finite(ONE)


def test_memory() -> None:
    assert ONE.nbytes == 28
    assert SOME.nbytes == 16
    assert SOME.is_sparse
    assert not ONE.is_sparse


finite = st.floats(-1e6, 1e6, width=32)


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.booleans(), finite), min_size=7, max_size=7), st.lists(finite, min_size=7, max_size=7), finite
)
@settings(max_examples=60, deadline=None)
def test_sparse_and_dense_give_the_same_bits(kept: list[tuple[bool, float]], other: list[float], weight: float) -> None:
    index = [at for at, (is_kept, _) in enumerate(kept) if is_kept]
    one = sparse(index, [kept[at][1] for at in index])
    two, whole = dense(*other), to_dense(one)
    assert is_equal(one, whole)
    for operation in (add, sub):
        np.testing.assert_array_equal(operation(two, one).values, operation(two, whole).values)
        np.testing.assert_array_equal(operation(one, two).values, operation(whole, two).values)
    assert dot(one, two) == dot(whole, two)
    terms, wholes = [(weight, one), (0.3, two)], [(weight, whole), (0.3, two)]
    np.testing.assert_array_equal(weighted_sum(terms, SCHEMA).values, weighted_sum(wholes, SCHEMA).values)


@pytest.mark.parametrize("size", [1, 7, 8, 129, 4096, 5001])
def test_sums_in_blocks_have_the_bits_of_one_sum(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(size)
    schema = Schema((TensorSpec("a", (size - 1,)), TensorSpec("b", (1,))))
    left, right = (Tensors(schema, rng.normal(size=size).astype(np.float32)) for _ in range(2))
    kept = np.flatnonzero(rng.random(size) < 0.3)
    sparse = Tensors(schema, left.values[kept], kept.astype(np.int32))
    part = Tensors(schema.subset(["b"]), np.float32([2]))
    terms = [(0.3, left), (0.7, sparse), (-0.1, part), (1 / 3, right)]
    whole = weighted_sum(terms, schema)
    monkeypatch.setattr(tensors_module, "_BLOCK", 128)
    # NumPy adds at most 128 numbers in a row, so blocks of 128 are the smallest that give its bits
    assert dot(left, right) == float(np.sum(left.values.astype(np.float64) * right.values))
    away = left.values - right.values
    assert distance(left, right) == sqrt(float(np.sum(away.astype(np.float64) * away)))
    assert is_equal(weighted_sum(terms, schema), whole)


@pytest.mark.parametrize("size", [1, 9, 130, 1000, 1500])
def test_squares_have_the_bits_of_dot(size: int) -> None:
    schema, rng = Schema((TensorSpec("a", (size,)),)), np.random.default_rng(size)
    several = [Tensors(schema, rng.standard_normal(size).astype(np.float32)) for _ in range(70)]
    several.insert(3, Tensors(schema, np.float32([2.5]), np.array([0])))
    assert squares(several) == [dot(one, one) for one in several]
    assert squares([]) == []
