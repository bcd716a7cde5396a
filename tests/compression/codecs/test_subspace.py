"""Random subspace: numbers by hand, the reference, unbiased and projected errors, bytes, and damage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.compression.codecs.subspace import Subspace
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.wire.hadamard import drawn_signs
from fedreuse.compression.wire.modes.subspace import drawn_rows
from fedreuse.core.errors import ConfigError
from tests.crossing import decoded, encode, tensor
from tests.references.subspace import subspace_bucket

SIZES = st.integers(20, 70)
NUMBERS = st.floats(-1000, 1000, width=32)


def seed_of(codec: Subspace, values: np.ndarray) -> np.uint64:
    seed: np.uint64 = encode(codec, tensor(values)).blocks[0].fields[0][0]
    return seed


def test_by_hand() -> None:
    # n = 8, k = 1: with the signs taken off v = (8, 0, ...), so y = H v is 8 in every row, one of which is sent.
    # The row r comes back as 8 * (row r of H) / 1, whose first entry is 8; as a projection 8 / 8 = 1.
    codec = Subspace(0.125, bucket=8)
    seed = np.random.default_rng(0).integers(0, 2**64, dtype=np.uint64)
    flips = 1.0 - 2.0 * drawn_signs(seed, 8)
    v = flips * np.array([8.0, 0, 0, 0, 0, 0, 0, 0])
    (row,) = drawn_rows(seed, 8, 1)
    signs = np.array([(-1.0) ** bin(int(row) & at).count("1") for at in range(8)])
    assert (flips * decoded(codec, v)).tolist() == (8 * signs).tolist()
    assert (flips * decoded(Subspace(0.125, False, 8), v)).tolist() == signs.tolist()


@settings(max_examples=40)
@given(SIZES.flatmap(lambda size: arrays(np.float32, size, elements=NUMBERS)), st.booleans())
def test_the_reference(values: np.ndarray, unbiased: bool) -> None:
    codec = Subspace(0.25, unbiased, 16)
    count = -(-len(values) // 16)
    padded = np.zeros(16 * count)
    seed = seed_of(codec, values)
    flips = 1.0 - 2.0 * drawn_signs(seed, len(values))
    padded[: len(values)] = flips * values
    rows = drawn_rows(seed, 16, 4).tolist()
    columns = padded.reshape(16, count)  # a bucket is a column
    wanted = np.stack([subspace_bucket(columns[:, at], rows, unbiased) for at in range(count)], axis=1).reshape(-1)
    found = decoded(codec, values)
    np.testing.assert_allclose(found, flips * wanted[: len(values)], rtol=1e-5, atol=1e-3)


@pytest.mark.slow
def test_right_on_average_and_the_variance_of_the_formula() -> None:
    values = np.random.default_rng(1).normal(size=64).astype(np.float32)
    rows = np.array([decoded(Subspace(0.25, bucket=64), values, seed) for seed in range(4000)], np.float64)
    assert (np.abs(rows.mean(0) - values) <= 4.5 * rows.std(0) / np.sqrt(4000)).all()
    errors = np.sum((rows - values) ** 2, axis=1) / np.sum(values.astype(np.float64) ** 2)
    assert errors.mean() == pytest.approx(3, rel=0.05)  # n / k - 1 = 4 - 1


@given(arrays(np.float32, 48, elements=NUMBERS))
def test_a_projection_is_never_longer_and_its_error_is_orthogonal(values: np.ndarray) -> None:
    found = decoded(Subspace(0.5, False, 16), values).astype(np.float64)
    length = float(values.astype(np.float64) @ values)
    assert found @ found <= length * (1 + 1e-5) + 1e-6
    assert abs((values - found) @ found) <= 1e-5 * length + 1e-6


def test_the_whole_space_is_the_tensor_to_rounding_and_travels_dense() -> None:
    values = np.random.default_rng(3).normal(size=100).astype(np.float32)
    assert encode(Subspace(1.0), tensor(values)).blocks[0].mode.name == "dense"
    assert decoded(Subspace(1.0), values).tolist() == values.tolist()


def test_bytes() -> None:
    # 4,096 coordinates in 4 buckets of 1,024: 51 rows each of 4 bytes, and a seed
    assert encode(Subspace(0.05), tensor(np.ones(4096))).field_bytes == 8 + 4 * 51 * 4


def test_ranges_and_links_that_feed_errors_back() -> None:
    with pytest.raises(ConfigError, match=r"subspace\.ratio must be in \(0, 1\]"):
        Subspace(0.0)
    with pytest.raises(ConfigError, match=r"subspace\.bucket must be a power of two"):
        Subspace(bucket=1000)
    with pytest.raises(ConfigError, match=r"error_feedback\.codec must be contractive"):
        ErrorFeedback(Subspace())
    assert ErrorFeedback(Subspace(unbiased=False)).codec == Subspace(unbiased=False)
