"""Low rank: products by hand, against the singular values, errors, bytes and allotment."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from fedreuse.compression.codecs.codec import codecs
from fedreuse.compression.codecs.low_rank import LowRank
from fedreuse.compression.wire.modes.factors import FACTORS
from fedreuse.core.errors import ConfigError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, drop_rows, is_equal, to_dense
from tests.crossing import arrived, encode, tensor
from tests.references.low_rank import energies

NUMBERS = st.floats(-1000, 1000, width=32)


def matrix(values: np.ndarray) -> Tensors:
    flat = np.asarray(values, np.float32)
    return Tensors(Schema((TensorSpec("layer.weight", flat.shape),)), flat.reshape(-1))


def received(codec: LowRank, tensors: Tensors) -> np.ndarray:
    """What arrives over the wire, which is what the sender decodes."""
    parcel = encode(codec, tensors)
    there = parcel.decode(tensors.schema)
    assert is_equal(arrived(parcel, tensors.schema).decode(tensors.schema), there)
    return to_dense(there).values


def test_a_product_by_hand() -> None:
    # levels (7, 3, -7) and (7, 1) with step 0.5: nothing is rounded, in 4 + ceil(5 / 2) = 7 of 24 bytes
    values = 0.5 * np.outer([7, 3, -7], [7, 1])
    parcel = encode(LowRank(7 / 24), matrix(values))
    (scales, _), block = parcel.blocks[0].fields, parcel.blocks[0]
    assert (block.count, block.body_bytes, abs(scales[0])) == (1, 7, 0.5)
    assert received(LowRank(7 / 24), matrix(values)).tolist() == values.reshape(-1).tolist()


def test_too_little_for_a_product_is_zero() -> None:
    parcel = encode(LowRank(6 / 24), matrix(np.ones((3, 2))))
    assert (parcel.blocks[0].mode, parcel.blocks[0].count, parcel.body_bytes) == (FACTORS, 0, 0)
    assert received(LowRank(6 / 24), matrix(np.ones((3, 2)))).tolist() == [0.0] * 6


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(30, 20), (12, 50), (16, 3, 3, 3)]))
def test_close_to_the_best_products(seed: int, shape: tuple[int, ...]) -> None:
    """Four products explain at least four fifths of what the best four do: levels have 4 bits."""
    rng = np.random.default_rng(seed)
    rows, columns = shape[0], int(np.prod(shape[1:]))
    decay = 0.5 ** np.arange(min(rows, columns))
    values = (rng.normal(size=(rows, len(decay))) * decay) @ rng.normal(size=(len(decay), columns))
    best = np.cumsum(energies(values))
    ratio = (4 * 4 + 2 * (rows + columns)) / (values.size * 4)
    tensors = matrix(values.reshape(shape))
    assert encode(LowRank(ratio), tensors).blocks[0].count == 4
    error = float(np.sum((received(LowRank(ratio), tensors) - values.reshape(-1)) ** 2))
    assert best[-1] - error >= 0.8 * best[3]


@given(arrays(np.float32, array_shapes(max_dims=3, max_side=9), elements=NUMBERS))
def test_more_bytes_never_hurt_and_the_error_is_never_longer_than_the_tensor(values: np.ndarray) -> None:
    tensors = matrix(values)
    exact = values.reshape(-1).astype(np.float64)
    errors = [float(np.sum((exact - received(LowRank(ratio), tensors)) ** 2)) for ratio in (0.1, 0.3, 0.6, 1.0)]
    square = float(exact @ exact)
    for first, second in zip([square, *errors], errors, strict=False):
        assert second <= first + 1e-9 * square  # sums of float32


@given(arrays(np.float32, (9, 7), elements=NUMBERS), st.floats(0.01, 1.0))
def test_within_the_ratio(values: np.ndarray, ratio: float) -> None:
    assert encode(LowRank(ratio), matrix(values)).body_bytes <= ratio * values.nbytes


def test_scaling_by_a_power_of_two_scales_the_result() -> None:
    values = np.random.default_rng(1).normal(size=(20, 10)).astype(np.float32)
    expected = received(LowRank(0.2), matrix(values))
    for factor in (2.0**100, 2.0**-100):
        assert received(LowRank(0.2), matrix(values * factor)).tolist() == (expected * np.float32(factor)).tolist()


def test_bytes_go_where_they_gain_most() -> None:
    rng = np.random.default_rng(0)
    schema = Schema((TensorSpec("small", (20, 20)), TensorSpec("large", (20, 20)), TensorSpec("bias", (20,))))
    flat = rng.normal(size=schema.size).astype(np.float32)
    flat[400:800] *= 10
    counts = [block.count for block in encode(LowRank(0.1), Tensors(schema, flat)).blocks]
    assert counts[0] == 0 < counts[1]


def test_vectors_are_one_product_and_small_tensors_dense() -> None:
    vector = np.arange(1, 41)
    assert encode(LowRank(0.2), tensor(vector)).blocks[0].count == 1
    # 15 levels over -40..40, whose step least squares changes a little: an error of about step^2 / 12
    assert np.mean((received(LowRank(0.2), tensor(vector)) - vector) ** 2) <= (40 / 7) ** 2 / 10
    scalar = Tensors(Schema((TensorSpec("scale", ()),)), np.float32([3.0]))
    assert encode(LowRank(1.0), scalar).blocks[0].mode.name == "dense"
    assert received(LowRank(1.0), scalar).tolist() == [3.0]


def test_what_is_no_number_and_integers_are_sent_as_they_are() -> None:
    for odd in (np.nan, np.inf):
        assert not np.isfinite(received(LowRank(0.5), matrix(np.array([[odd, 1.0], [2.0, 3.0]])))).all()
    whole = Tensors(Schema((TensorSpec("count", (3,), "int64", "counter"),)), np.array([1, 2**40, -3]))
    assert received(LowRank(0.01), whole).tolist() == [1, 2**40, -3]


def test_a_part_of_the_rows() -> None:
    tensors = matrix(np.random.default_rng(0).normal(size=(12, 8)))
    part = drop_rows(tensors, {"layer.weight": [1, 5]})
    parcel = LowRank(0.5).encode(part, tensors.schema, np.random.default_rng(0))
    there = parcel.decode(tensors.schema)
    assert is_equal(arrived(parcel, tensors.schema).decode(tensors.schema), there)


def test_ranges() -> None:
    for ratio in (0.0, 1.5):
        with pytest.raises(ConfigError, match=r"uplink: low_rank\.ratio must be in \(0, 1\]"):
            codecs.parse({"name": "low_rank", "ratio": ratio}, "uplink")
