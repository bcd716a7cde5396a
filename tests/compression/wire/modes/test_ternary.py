"""One magnitude with signs: a block by hand, and messages whose positions cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.wire.block import MODES, Block
from fedreuse.compression.wire.modes.ternary import TERNARY
from fedreuse.compression.wire.packing import pack_bits
from fedreuse.compression.wire.rice import rice_encode
from fedreuse.core.errors import WireError
from fedreuse.core.schema import TensorSpec

SPEC = TensorSpec("a", (4,))


def taken(*arrays: np.ndarray):
    """Hands out these arrays in order, whatever is asked for."""
    left = iter(arrays)
    return lambda dtype, length: next(left).astype(dtype)[:length]


def fields(positions: list[int], magnitude: float, signs: list[int]) -> tuple[np.ndarray, ...]:
    unary, low = rice_encode(np.array(positions), SPEC.size)
    length = np.array([len(unary)], "<u4")
    return np.array([magnitude], np.float32), length, unary, low, pack_bits(np.array(signs), 1)


def test_a_block_by_hand() -> None:
    assert MODES[17] is TERNARY
    block = Block(TERNARY, 2, fields([1, 3], 0.5, [1, 0]))
    positions, values = TERNARY.decode(block, SPEC, {})
    assert positions is not None
    assert (positions.tolist(), values.tolist()) == ([1, 3], [-0.5, 0.5])
    assert TERNARY.read(taken(), SPEC, 0, {}) == ()  # nothing kept: nothing travels


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda sent: (-sent[0], *sent[1:]), "magnitude must not be negative"),
        (lambda sent: (sent[0], sent[1] + 9, *sent[2:]), "a unary part of"),
        (lambda sent: (*sent[:2], sent[2] * 0, *sent[3:]), "the message says 2"),
    ],
)
def test_what_cannot_be_is_refused(change, text: str) -> None:
    with pytest.raises(WireError, match=text):
        TERNARY.read(taken(*change(fields([1, 3], 0.5, [1, 0]))), SPEC, 2, {})


def test_a_unary_part_longer_than_the_tensor_is_refused_before_it_is_read() -> None:
    # 2 of 100: 5 low bits, so 2 ones and at most 100 >> 5 = 3 zeros, one byte
    def take(dtype: np.dtype, length: int) -> np.ndarray:
        assert length == 1
        return np.array([2], dtype)

    with pytest.raises(WireError, match="unary part"):
        TERNARY.read(take, TensorSpec("a", (100,)), 2, {})
