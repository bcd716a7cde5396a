"""An even grid: one level by hand, and ends or codes that are no grid."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.wire.block import MODES, Block
from fedreuse.compression.wire.modes.grid import GRID, LENGTH_BITS, MAX_LEVELS
from fedreuse.compression.wire.packing import pack_bits
from fedreuse.core.errors import WireError
from fedreuse.core.schema import TensorSpec

SPEC = TensorSpec("a", (4,))


def taken(*arrays: np.ndarray):
    """Hands out these arrays in order, whatever is asked for."""
    left = iter(arrays)
    return lambda dtype, length: next(left).astype(dtype)[:length]


def test_one_level_is_the_middle() -> None:
    assert MODES[20] is GRID
    block = Block(GRID, 4, (np.array([1, 3], np.float32), np.array([1], "<u2")))
    positions, values = GRID.decode(block, SPEC, {})
    assert positions is None
    assert values.tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("ends", "levels", "text"),
    [
        ([3, 1], 1, "not a valid grid"),
        ([1, np.inf], 1, "not a valid grid"),
        ([1, 3], 0, "0 levels"),
        ([1, 3], MAX_LEVELS + 1, "not a valid grid"),
    ],
)
def test_what_is_no_grid_is_refused(ends: list[float], levels: int, text: str) -> None:
    with pytest.raises(WireError, match=text):
        GRID.read(taken(np.array(ends), np.array([levels])), SPEC, 4, {})


def test_lengths_that_are_no_code_are_refused() -> None:
    lengths = pack_bits(np.array([1, 1, 1]), LENGTH_BITS)
    with pytest.raises(WireError, match="not those of a Huffman code"):
        GRID.read(taken(np.array([1, 3]), np.array([3]), lengths), SPEC, 4, {})


def test_the_bits_after_the_last_code_are_zero() -> None:
    # two levels with codes of one bit: four coordinates are the upper four bits of one byte
    head = np.array([1, 3]), np.array([2]), pack_bits(np.array([1, 1]), LENGTH_BITS), np.array([4])
    fields = GRID.read(taken(*head, np.array([0b1010_0000])), SPEC, 4, {})
    assert GRID.decode(Block(GRID, 4, fields), SPEC, {})[1].tolist() == [2.5, 1.5, 2.5, 1.5]
    for stream in (0b1010_0001, 0b1010_1000):
        with pytest.raises(WireError, match="beyond the last code"):
            GRID.read(taken(*head, np.array([stream])), SPEC, 4, {})
