"""Rounded values: by hand, within their error, in every form of where they are, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.compression.wire.block import Block
from fedreuse.compression.wire.modes.narrow import NARROW, Kind, narrow_block
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.schema import Schema, TensorSpec
from tests.crossing import arrived, assert_refused

KINDS: list[Kind] = ["fp16", "bf16", "int8", "int4"]
ERRORS = {"fp16": 2**-11, "bf16": 2**-8, "int8": 0.5001 / 127, "int4": 0.5001 / 7}


def there(positions: np.ndarray | None, values: np.ndarray, size: int, kind: Kind) -> np.ndarray:
    schema = Schema((TensorSpec("t", (size,), values.dtype.name),))
    parcel = Parcel((narrow_block(positions, values, size, kind),), {"values": kind})
    found = arrived(parcel, schema).decode(schema)
    if positions is not None and found.index is not None:
        np.testing.assert_array_equal(found.index, positions)
    return found.values


def test_by_hand() -> None:
    values = np.array([1.0, -0.3, 0.0, 3.5], np.float32)
    assert there(None, values, 4, "fp16").tolist() == [1.0, float(np.float16(-0.3)), 0.0, 3.5]
    # bfloat16 has 8 significant bits: 0.3 is 1.0011010 * 2^-2
    assert there(None, values, 4, "bf16").tolist() == [1.0, -0.30078125, 0.0, 3.5]
    # steps of 0.5: -0.3 is nearest to -0.5
    assert there(None, values, 4, "int4").tolist() == [1.0, -0.5, 0.0, 3.5]
    block = narrow_block(None, values, 4, "int4")
    assert [field.tolist() for field in block.fields] == [[], [0.5], [0x7A, 0xF8]]  # levels 2, -1, 0, 7, each plus 8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("size", "count", "where"), [(50, 50, 0), (50, 10, 7), (5000, 3, 12)])
def test_where_they_are(kind: Kind, size: int, count: int, where: int) -> None:
    rng = np.random.default_rng(0)
    positions = np.sort(rng.choice(size, count, replace=False)).astype(np.int32)
    values = rng.normal(size=count).astype(np.float32)
    block = narrow_block(positions, values, size, kind)
    assert block.mask_bytes == where
    bits = {"fp16": 16, "bf16": 16, "int8": 8, "int4": 4}[kind]
    assert block.field_bytes == where + -(-bits * count // 8) + (4 if bits < 16 else 0)
    there(positions, values, size, kind)


@pytest.mark.slow
@given(
    arrays(np.float32, st.integers(1, 40), elements=st.floats(-1e3, 1e3, width=32)),
    st.sampled_from(KINDS),
)
@settings(max_examples=100, deadline=None)
def test_the_error_is_that_of_the_form(values: np.ndarray, kind: Kind) -> None:
    found = there(None, values, len(values), kind).astype(np.float64)
    exact = values.astype(np.float64)
    size = np.abs(exact).max() if kind.startswith("int") else np.abs(exact)
    tiny = 2.0**-25 if kind == "fp16" else 1e-38
    assert (np.abs(found - exact) <= ERRORS[kind] * size + tiny).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_arrives_as_such(kind: Kind, bad: float) -> None:
    values = np.array([1.0, bad, 2.0], np.float32)
    assert not np.isfinite(there(None, values, 3, kind)).all()


def test_the_smallest_nan_does_not_become_infinite() -> None:
    odd = np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF], np.uint32).view(np.float32)
    assert np.isnan(there(None, odd, 3, "bf16")).all()


@pytest.mark.parametrize("kind", ["int8", "int4"])
def test_zeros_are_a_scale_alone(kind: Kind) -> None:
    assert narrow_block(None, np.zeros(9, np.float32), 9, kind).field_bytes == 4
    assert there(None, np.zeros(9, np.float32), 9, kind).tolist() == [0] * 9


def test_lies_are_refused() -> None:
    schema = Schema((TensorSpec("t", (4,)),))
    counters = Schema((TensorSpec("t", (4,), "int64"),))
    nothing, scale = np.empty(0, np.uint8), np.array([0.5], "<f4")
    good = Block(NARROW, 4, (nothing, scale, np.array([0x7A, 0xF8], np.uint8)))

    def refuse(block: Block, kind: object, match: str, where: Schema = schema) -> None:
        assert_refused(Parcel((block,), {"values": kind}), where, match)

    refuse(good, "int3", "note values: fp16, bf16, int8 or int4 expected, got 'int3'")
    refuse(good, "int4", "int64 cannot be written as narrow values", counters)
    refuse(Block(NARROW, 4, (nothing, -scale, good.fields[2])), "int4", "scale must not be negative")
    refuse(Block(NARROW, 4, (nothing, scale, np.array([0x70, 0xF8], np.uint8))), "int4", "a code below the lowest")
    refuse(Block(NARROW, 3, (np.array([7], np.uint8), scale, np.array([0x7A, 0xF8], np.uint8))), "int4", "bits beyond")
    refuse(Block(NARROW, 2, (np.array([7], np.uint8), np.ones(2, "<f2"))), "fp16", "the bitmap marks 3")


@pytest.mark.parametrize(("size", "mask"), [(32, [128, 0, 0, 0]), (33, [7]), (40, [7])])
def test_a_bitmap_only_if_it_is_not_longer_than_the_positions(size: int, mask: list[int]) -> None:
    # one position takes 4 bytes, and so does a bitmap of 32 coordinates
    block = narrow_block(np.array([7], np.int32), np.ones(1, np.float32), size, "fp16")
    assert block.fields[0].tolist() == mask
