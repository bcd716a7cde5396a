"""A multiple of what a link holds: one number or none, and meaningless to everybody else."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.wire.block import MODES, Block
from fedreuse.compression.wire.modes.coefficient import COEFFICIENT
from fedreuse.core.errors import WireError
from fedreuse.core.schema import TensorSpec

SPEC = TensorSpec("a", (4,))


def taken(*arrays: np.ndarray):
    """Hands out these arrays in order, whatever is asked for."""
    left = iter(arrays)
    return lambda dtype, length: next(left).astype(dtype)[:length]


def test_one_number_or_a_repetition() -> None:
    assert MODES[9] is COEFFICIENT
    (number,) = COEFFICIENT.read(taken(np.array([0.5])), SPEC, 1, {})
    assert number.tolist() == [0.5]
    assert COEFFICIENT.read(taken(), SPEC, 0, {}) == ()


def test_two_numbers_are_refused() -> None:
    with pytest.raises(WireError, match="a: 2 coefficients for one tensor"):
        COEFFICIENT.read(taken(), SPEC, 2, {})


def test_nobody_but_the_link_can_decode_it() -> None:
    with pytest.raises(WireError, match="which only the link lbgm holds"):
        COEFFICIENT.decode(Block(COEFFICIENT, 0, ()), SPEC, {})
