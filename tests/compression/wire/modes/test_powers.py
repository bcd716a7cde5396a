"""Powers of two: signs and exponents by hand; whole numbers have none."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.wire.block import MODES, Block
from fedreuse.compression.wire.modes.powers import FRACTION_BITS, POWERS
from fedreuse.compression.wire.packing import pack_bits
from fedreuse.core.errors import WireError
from fedreuse.core.schema import TensorSpec

SPEC = TensorSpec("a", (4,))


def taken(*arrays: np.ndarray):
    """Hands out these arrays in order, whatever is asked for."""
    left = iter(arrays)
    return lambda dtype, length: next(left).astype(dtype)[:length]


def test_a_block_by_hand() -> None:
    """The biased exponents 127, 128 and 126 are 1, 2 and 1/2; 0 is zero."""
    assert MODES[18] is POWERS
    signs = pack_bits(np.array([0, 1, 0, 0]), 1)
    positions, values = POWERS.decode(Block(POWERS, 4, (signs, np.array([127, 128, 126, 0], np.uint8))), SPEC, {})
    assert positions is None
    assert values.tolist() == [1, -2, 0.5, 0]
    assert np.finfo(np.float32).nmant == FRACTION_BITS


def test_whole_numbers_are_refused() -> None:
    with pytest.raises(WireError, match="powers of two"):
        POWERS.read(taken(), TensorSpec("a", (4,), "int64"), 4, {})
