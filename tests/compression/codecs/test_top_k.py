"""Top-K: who is kept, ties, floating point, and numbers that are none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.compression.codecs.top_k import TopK, kept_count, largest, mark_largest
from fedreuse.core.errors import ConfigError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, to_dense

RNG = np.random.default_rng(0)


def one(flat: np.ndarray) -> tuple[Tensors, Schema]:
    schema = Schema((TensorSpec("a", (len(flat),), flat.dtype.name),))
    return Tensors(schema, flat), schema


@pytest.mark.parametrize(
    ("size", "ratio", "count"),
    [
        (5, 0.2, 1),
        (10, 0.3, 3),  # 0.3 * 10 is 3.0000000000000004 or 2.9999..: either way 3
        (100, 0.29, 29),  # 28.999999999999996
        (3, 0.2, 1),  # never less than one
        (1, 0.01, 1),
        (7, 1.0, 7),
        (9, 0.5, 4),
    ],
)
def test_how_many_are_kept(size: int, ratio: float, count: int) -> None:
    assert kept_count(size, ratio) == count


@given(st.integers(1, 10**7))
def test_a_fifth_is_a_fifth(size: int) -> None:
    # r = 0.2 keeps d // 5, at least 1
    assert kept_count(size, 0.2) == max(1, size // 5)


def test_the_largest_by_hand() -> None:
    assert largest(np.array([1.0, -5.0, 2.0, 4.0, -2.0]), 2).tolist() == [1, 3]
    # |2| twice: the smaller position wins
    assert largest(np.array([1.0, -5.0, -2.0, 4.0, 2.0]), 3).tolist() == [1, 2, 3]
    assert largest(np.zeros(6), 2).tolist() == [0, 1]


@pytest.mark.parametrize("kind", ["normal", "ties", "rows", "zeros", "undefined", "infinite", "all undefined"])
@pytest.mark.parametrize("count", [1, 700, 6000])
def test_a_sample_of_the_magnitudes_never_changes_the_result(kind: str, count: int) -> None:
    flat = np.random.default_rng(7).standard_normal(1 << 17).astype(np.float32)
    if kind == "ties":
        flat = np.rint(flat)
    elif kind == "rows":  # all large values lie in few rows, which a strided sample may miss
        flat.reshape(256, -1)[3] *= 100
    elif kind == "zeros":
        flat[100:] = 0
    elif kind == "undefined":
        flat[[5, 70_000, 70_001]] = np.nan
    elif kind == "infinite":
        flat[[5, 70_000]] = np.inf, -np.inf
    elif kind == "all undefined":
        flat[:] = np.nan
    assert largest(flat, count).tolist() == np.flatnonzero(mark_largest(flat, count)).tolist()


@pytest.mark.slow
@given(
    arrays(np.float32, st.integers(1, 60), elements=st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0])),
    st.data(),
)
@settings(max_examples=120, deadline=None)
def test_ties_are_those_of_a_stable_sort(flat: np.ndarray, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(flat)))
    wanted = np.sort(np.argsort(-np.abs(flat), kind="stable")[:count])
    np.testing.assert_array_equal(largest(flat, count), wanted)


@given(arrays(np.float64, st.integers(1, 200), elements=st.floats(-1e6, 1e6)), st.floats(0.01, 1.0))
@settings(max_examples=60, deadline=None)
def test_the_support_is_k_and_the_rest_is_bounded(flat: np.ndarray, ratio: float) -> None:
    tensors, schema = one(flat)
    decoded = TopK(ratio).encode(tensors, schema, RNG).decode(schema)
    count = kept_count(len(flat), ratio)
    if decoded.is_sparse:
        assert len(decoded.values) == count
    kept = to_dense(decoded).values
    assert np.count_nonzero(kept) <= count
    # |x - C(x)|^2 <= (1 - k / d) |x|^2
    bound = (1 - count / len(flat)) * np.sum(flat**2)
    assert np.sum((flat - kept) ** 2) <= bound * (1 + 1e-9) + 1e-9


def test_ratio_one_is_dense_bit_for_bit() -> None:
    tensors, schema = one(np.array([0.0, -0.0, np.nan, 3.0], np.float32))
    parcel = TopK(1.0).encode(tensors, schema, RNG)
    assert parcel.blocks[0].mode.name == "dense"
    assert is_equal(parcel.decode(schema), tensors)


def test_each_tensor_keeps_its_own_largest() -> None:
    schema = Schema((TensorSpec("a", (4,)), TensorSpec("b", (4,))))
    tensors = Tensors(schema, np.array([9, 8, 7, 6, 1, 2, 3, 4], np.float32))
    decoded = TopK(0.25).encode(tensors, schema, RNG).decode(schema)
    np.testing.assert_array_equal(to_dense(decoded).values, [9, 0, 0, 0, 0, 0, 0, 4])


@pytest.mark.parametrize("where", [[0], [5], [0, 5, 9], list(range(10))])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_never_dropped_silently(where: list[int], bad: float) -> None:
    # a diverged client must be seen and refused at the other end, not turned into zeros
    flat = np.arange(10, dtype=np.float32)
    flat[where] = bad
    tensors, schema = one(flat)
    for ratio in (0.1, 0.2, 0.5):
        assert not np.isfinite(TopK(ratio).encode(tensors, schema, RNG).decode(schema).values).all()


@pytest.mark.parametrize("ratio", [0.0, -0.1, 1.5, float("nan")])
def test_a_ratio_keeps_something(ratio: float) -> None:
    with pytest.raises(ConfigError, match=r"top_k\.ratio must be in \(0, 1\], got"):
        TopK(ratio)
