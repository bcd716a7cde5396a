"""Rotated tensors: levels that are the best for a normal distribution, buckets, and messages that lie."""

from __future__ import annotations

from itertools import pairwise
from math import erf, exp, inf, pi, sqrt

import numpy as np
import pytest

from fedreuse.compression.codecs.eden import Eden
from fedreuse.compression.wire.block import MODES
from fedreuse.compression.wire.modes.rotated import LEVELS_OF, ROTATED, UNIT, bucket_shape, levels_of, with_signs
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors
from tests.crossing import assert_refused, encode, tensor, with_fields


def density(x: float) -> float:
    return 0.0 if x == inf else exp(-x * x / 2) / sqrt(2 * pi)


def below(x: float) -> float:
    return 1.0 if x == inf else (1 + erf(x / sqrt(2))) / 2


@pytest.mark.parametrize("bits", [2, 3, 4])
def test_each_level_is_the_mean_of_what_is_rounded_to_it(bits: int) -> None:
    # Lloyd's two conditions: borders halfway between levels, levels at the mean of their interval
    levels = [level / UNIT for level in LEVELS_OF[bits]]
    borders = [0.0, *((one + other) / 2 for one, other in pairwise(levels)), inf]
    for level, low, high in zip(levels, borders, borders[1:], strict=False):
        mean = (density(low) - density(high)) / (below(high) - below(low))
        assert level == pytest.approx(mean, abs=0.75 / UNIT)


@pytest.mark.parametrize(
    ("size", "bucket", "shape"),
    [(1, 1024, (1, 1)), (2, 1024, (2, 1)), (5, 1024, (8, 1)), (1024, 1024, (1024, 1)), (1025, 1024, (1024, 2)),
     (5000, 8, (8, 625))],
)  # fmt: skip
def test_buckets(size: int, bucket: int, shape: tuple[int, int]) -> None:
    assert bucket_shape(size, bucket) == shape


def test_the_upper_bit_is_the_sign() -> None:
    assert levels_of(np.array([0, 1, 2, 3]), 2).tolist() == [1855, 6187, -1855, -6187]
    assert levels_of(np.array([0, 1]), 1).tolist() == [1, -1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_signs_twice_are_none(dtype: type) -> None:
    flat = np.random.default_rng(0).normal(size=99).astype(dtype)
    once = with_signs(flat, np.uint64(5))
    assert not np.array_equal(once, flat)
    assert np.array_equal(np.abs(once), np.abs(flat))
    assert np.array_equal(with_signs(once, np.uint64(5)), flat)


def test_a_sum_of_very_many_signs_does_not_wrap() -> None:
    # 65536 equal signs: the first coordinate of H k is 65536, which 16 bits do not hold
    schema = Schema((TensorSpec("w", (65536,)),))
    flat = np.zeros(65536, np.float32)
    seed = np.uint64(np.random.default_rng(0).integers(0, 2**64, dtype=np.uint64))
    flat[0] = 3.0  # H D v is plus or minus 3 everywhere
    parcel = Eden(1, bucket=65536).encode(Tensors(schema, flat), schema, np.random.default_rng(0))
    assert parcel.blocks[0].fields[0][0] == seed
    np.testing.assert_allclose(parcel.decode(schema).values, flat, rtol=1e-6)


def made() -> tuple[Parcel, Schema]:
    tensors = tensor(np.random.default_rng(1).normal(size=100))
    return encode(Eden(3, bucket=16), tensors), tensors.schema


def test_lies_are_refused() -> None:
    parcel, schema = made()
    seed, scales, codes = parcel.blocks[0].fields
    assert (len(scales), len(codes)) == (7, 42)
    assert_refused(with_fields(parcel, seed, scales, codes[:-1]), schema, "early")
    assert_refused(with_fields(parcel, seed, scales, np.append(codes, codes[:1])), schema, "left over")
    assert_refused(with_fields(parcel, seed, -np.abs(scales), codes), schema, "not be negative")
    assert_refused(with_fields(parcel, bits=5), schema, "note bits: an integer from 1 to 4")
    assert_refused(with_fields(parcel, bucket=17), schema, "a power of two expected, got 17")
    assert_refused(with_fields(parcel, bucket=2**17), schema, "note bucket: an integer from 1 to 65536")
    assert (ROTATED.code, MODES[24]) == (24, ROTATED)


def test_whole_numbers_and_nothing_cannot_be_rotated() -> None:
    parcel, _ = made()
    assert_refused(parcel, Schema((TensorSpec("w", (100,), "int64"),)), "cannot be written as rotated")
    assert_refused(parcel, Schema((TensorSpec("w", (0,)),)), "an empty tensor cannot be rotated")


def test_bits_after_the_last_are_refused() -> None:
    tensors = tensor(np.random.default_rng(1).normal(size=20))
    parcel = encode(Eden(1, bucket=8), tensors)
    assert parcel.blocks[0].mode is ROTATED  # three buckets of 8: 24 bits, no padding
    seed, scales, codes = parcel.blocks[0].fields
    assert len(codes) == 3
    assert_refused(with_fields(parcel, seed, scales, codes[:2]), tensors.schema, "early")


def test_the_levels_are_part_of_the_format() -> None:
    assert UNIT == 4096
    assert LEVELS_OF == {
        1: (1,),
        2: (1855, 6187),
        3: (1004, 3097, 5505, 8814),
        4: (526, 1589, 2690, 3860, 5146, 6628, 8475, 11193),
    }
