"""Blocks: the smallest mode, byte for byte what the formulas say, and every bit comes back."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.compression.wire.block import (
    ABSENT,
    BITMAP,
    DENSE,
    MODES,
    PAIRS,
    Mode,
    absent_block,
    add_mode,
    dense_block,
    sparse_block,
)
from fedreuse.core.errors import WireError
from fedreuse.core.schema import TensorSpec


def formula(mode: str, size: int, kept: int, width: int) -> int:
    """Bytes of the three forms: dense = d b, pairs = k (b + 4), bitmap = k b + ceil(d / 8)."""
    return {"dense": size * width, "pairs": kept * (width + 4), "bitmap": kept * width + ceil(size / 8)}[mode]


@pytest.mark.slow
@given(st.integers(1, 3000), st.data(), st.sampled_from(["float32", "float64", "int64"]))
@settings(max_examples=150, deadline=None)
def test_the_mode_is_the_brute_force_minimum(size: int, data: st.DataObject, dtype: str) -> None:
    kept = data.draw(st.integers(0, size))
    positions = np.sort(np.random.default_rng(size).choice(size, kept, replace=False)).astype(np.int32)
    values = np.ones(kept, dtype)
    width = np.dtype(dtype).itemsize
    block = sparse_block(positions, values, size)
    sizes = {mode: formula(mode, size, kept, width) for mode in ("dense", "pairs", "bitmap")}
    assert block.field_bytes == min(sizes.values())
    assert sizes[block.mode.name] == block.field_bytes


@pytest.mark.parametrize("width", [4, 8])
def test_pairs_become_a_bitmap_above_one_in_thirty_two(width: int) -> None:
    # pairs - bitmap = 4 k - d / 8: equal at k / d = 1 / 32, and a tie goes to the bitmap
    size, dtype = 3200, {4: np.float32, 8: np.float64}[width]
    modes = [
        sparse_block(np.arange(kept, dtype=np.int32), np.ones(kept, dtype), size).mode.name for kept in (99, 100, 101)
    ]
    assert modes == ["pairs", "bitmap", "bitmap"]


def test_a_bitmap_becomes_dense_where_it_saves_nothing() -> None:
    # d = 32, b = 4: bitmap = 4 k + 4 < 128 iff k < 31
    modes = [sparse_block(np.arange(k, dtype=np.int32), np.ones(k, np.float32), 32).mode.name for k in (30, 31, 32)]
    assert modes == ["bitmap", "dense", "dense"]


def read(block, spec: TensorSpec, data: bytes | None = None, count: int | None = None):
    """What a receiver makes of the block's bytes."""
    raw = b"".join(field.tobytes() for field in block.fields) if data is None else data
    at = 0

    def take(dtype: np.dtype, length: int) -> np.ndarray:
        nonlocal at
        if at + dtype.itemsize * length > len(raw):
            raise WireError("early end")
        array = np.frombuffer(raw, dtype, length, at)
        at += dtype.itemsize * length
        return array

    fields = block.mode.read(take, spec, block.count if count is None else count, {})
    return type(block)(block.mode, block.count, fields)


patterns = {
    "float32": st.integers(0, 2**32 - 1).map(lambda bits: np.uint32(bits).view(np.float32)),
    "float64": st.integers(0, 2**64 - 1).map(lambda bits: np.uint64(bits).view(np.float64)),
    "int64": st.integers(-(2**63), 2**63 - 1).map(np.int64),
}


@pytest.mark.slow
@given(st.sampled_from(sorted(patterns)), st.data())
@settings(max_examples=150, deadline=None)
def test_every_bit_comes_back(dtype: str, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.tuples(st.booleans(), patterns[dtype]), max_size=90))
    spec = TensorSpec("w", (len(drawn),), dtype)
    positions = np.array([at for at, (is_kept, _) in enumerate(drawn) if is_kept], np.int32)
    values = np.array([value for is_kept, value in drawn if is_kept], dtype)
    whole = np.zeros(len(drawn), dtype)
    whole[positions] = values
    for block in (sparse_block(positions, values, len(drawn)), dense_block(whole)):
        found, carried = read(block, spec).mode.decode(read(block, spec), spec, {})
        flat = np.zeros(len(drawn), dtype)
        flat[slice(None) if found is None else found] = carried
        assert flat.tobytes() == whole.tobytes()


def test_what_travels_is_little_endian() -> None:
    big = np.array([1.5, 0, 0, 0, 0, 0, 0, 0], ">f4")
    assert dense_block(big).fields[0].tobytes() == big.astype("<f4").tobytes()
    block = sparse_block(np.array([0], np.int32), big[:1], 8)
    assert block.fields[-1].tobytes() == np.array([1.5], "<f4").tobytes()


# the last: each step, taken as a difference of 32-bit numbers, wraps around to something positive
@pytest.mark.parametrize("index", [[3, 3], [4, 2], [1, 5, 3], [1, 5, 5], [-1, 2], [5, 64], [0, 2**31 - 1, -2, 1]])
def test_indices_increase_within_the_tensor(index: list[int]) -> None:
    spec = TensorSpec("w", (64,))
    block = sparse_block(np.array([1, 2], np.int32), np.ones(2, np.float32), 64)
    assert block.mode is BITMAP
    pairs = type(block)(PAIRS, len(index), (np.array(index, "<i4"), np.ones(len(index), "<f4")))
    with pytest.raises(WireError, match=r"w: indices must increase within 0\.\.63"):
        read(pairs, spec)


@pytest.mark.parametrize("bits", [[0b1, 0b0], [0b111, 0b0], [0b1, 0b10000]])
def test_a_bitmap_marks_what_it_says(bits: list[int]) -> None:
    # 10 coordinates, two kept; the last mark lies in the padding of the second byte
    spec = TensorSpec("w", (10,))
    block = sparse_block(np.array([0, 1], np.int32), np.ones(2, np.float32), 10)
    data = np.array(bits, np.uint8).tobytes() + np.ones(2, "<f4").tobytes()
    with pytest.raises(WireError, match="w: the bitmap marks"):
        read(block, spec, data)


def test_absent_is_nothing() -> None:
    block = absent_block()
    assert (block.mode, block.field_bytes, block.fields) == (ABSENT, 0, ())


def test_codes_are_part_of_the_format() -> None:
    assert [(MODES[code].code, MODES[code].name) for code in range(4)] == [
        (0, "absent"),
        (1, "dense"),
        (2, "pairs"),
        (3, "bitmap"),
    ]
    with pytest.raises(ValueError, match="1 is already dense"):
        add_mode(Mode(1, "other", DENSE.read, DENSE.decode))
    with pytest.raises(ValueError, match="1 is already dense"):
        add_mode(Mode(99, "dense", DENSE.read, DENSE.decode))
