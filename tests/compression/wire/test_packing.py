"""Numbers of a few bits: every width comes back, in as few bytes as there are bits; lies are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.compression.wire.packing import (
    check_float,
    look_at_widths,
    pack_bits,
    pack_widths,
    take_bits,
    unpack_bits,
    whole_note,
)
from fedreuse.core.errors import WireError
from fedreuse.core.schema import TensorSpec

SPEC = TensorSpec("layer.weight", (5,))


@pytest.mark.slow
@given(st.integers(0, 32), st.data())
@settings(max_examples=200, deadline=None)
def test_every_width_comes_back(width: int, data: st.DataObject) -> None:
    numbers = np.array(data.draw(st.lists(st.integers(0, 2**width - 1), max_size=40)), np.int64)
    packed = pack_bits(numbers, width)
    assert packed.nbytes == -(-width * len(numbers) // 8)
    assert unpack_bits(packed, width, len(numbers)).tolist() == numbers.tolist()


def test_three_bits_by_hand() -> None:
    # 1, 2, 7 from the least significant bit: 1 + 2 * 8 + 7 * 64 = 465 = 0x1d1
    assert pack_bits(np.array([1, 2, 7]), 3).tolist() == [0xD1, 0x01]


def taker(*raw: int):
    return lambda dtype, length: np.array(raw[:length], dtype)


def test_bits_beyond_the_last_number_are_refused() -> None:
    assert take_bits(taker(0xD1, 0x01), SPEC, 3, 3).tolist() == [0xD1, 0x01]
    with pytest.raises(WireError, match=r"layer\.weight: bits beyond the last of 3 numbers"):
        take_bits(taker(0xD1, 0x03), SPEC, 3, 3)
    assert take_bits(taker(0xFF), SPEC, 4, 2).tolist() == [0xFF]


@pytest.mark.parametrize(
    "notes", [{}, {"bits": 1}, {"bits": 9}, {"bits": "4"}, {"bits": True}, {"bits": 4.0}, None, ["bits"]]
)
def test_notes_are_not_trusted(notes: object) -> None:
    with pytest.raises(WireError, match="note bits: an integer from 2 to 8 expected"):
        whole_note(notes, "bits", 2, 8)  # type: ignore[arg-type]


def test_a_note_within_its_bounds() -> None:
    assert whole_note({"bits": 8}, "bits", 2, 8) == 8


def test_whole_numbers_have_no_approximation() -> None:
    check_float(SPEC, "levels")
    with pytest.raises(WireError, match="int64 cannot be written as levels"):
        check_float(TensorSpec("n", (), "int64"), "levels")


@given(st.lists(st.integers(0, 25), max_size=300), st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_numbers_of_their_own_widths_come_back(widths: list[int], seed: int) -> None:
    each = np.array(widths, np.int64)
    numbers = np.random.default_rng(seed).integers(0, 2**25, len(each)) & ((1 << each) - 1)
    packed = pack_widths(numbers.astype(np.uint32), each)
    assert len(packed) == -(-int(each.sum()) // 8)
    np.testing.assert_array_equal(look_at_widths(packed, each) & ((1 << each) - 1), numbers)


def test_numbers_of_their_own_widths_by_hand() -> None:
    # 5 in 3 bits, 1 in 1, nothing, 9 in 4: 1001 1 101 from the most significant bit
    packed = pack_widths(np.array([5, 1, 0, 9], np.uint32), np.array([3, 1, 0, 4]))
    assert packed.tolist() == [0b10011101]
    looked_at = look_at_widths(packed, np.array([3, 1, 0, 4], np.uint8))
    assert looked_at.tolist() == [0b10011101, 0b10011, 0b1001, 0b1001]
