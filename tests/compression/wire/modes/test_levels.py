"""Levels of a bucket's scale: two bits by hand, and codes or scales that cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.wire.block import MODES, Block
from fedreuse.compression.wire.modes.levels import LEVELS, spread, top_level
from fedreuse.compression.wire.packing import pack_bits
from fedreuse.core.errors import WireError
from fedreuse.core.schema import TensorSpec

SPEC = TensorSpec("a", (4,))


def taken(*arrays: np.ndarray):
    """Hands out these arrays in order, whatever is asked for."""
    left = iter(arrays)
    return lambda dtype, length: next(left).astype(dtype)[:length]


NOTES = {"bits": 2, "bucket": 2}


def test_two_bits_by_hand() -> None:
    """Codes 0, 1, 2 are -1, 0, 1 times the scale of the bucket: (0, 2), (1, 2) with scales 3 and 5."""
    assert MODES[16] is LEVELS
    block = Block(LEVELS, 4, (np.array([3, 5], np.float32), pack_bits(np.array([0, 2, 1, 2]), 2)))
    positions, values = LEVELS.decode(block, SPEC, NOTES)
    assert positions is None
    assert values.tolist() == [-3, 3, 0, 5]


def test_the_top_level_and_buckets() -> None:
    assert [top_level(bits) for bits in (2, 4, 8)] == [1, 7, 127]
    assert spread(np.array([1, 2]), 3, 5).tolist() == [1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("scales", "codes", "text"), [([-1, 1], [0, 0, 0, 0], "not be negative"), ([1, 1], [3, 0, 0, 0], "a code above 2")]
)
def test_what_cannot_be_is_refused(scales: list[int], codes: list[int], text: str) -> None:
    with pytest.raises(WireError, match=text):
        LEVELS.read(taken(np.array(scales), pack_bits(np.array(codes), 2)), SPEC, 4, NOTES)


def test_a_bucket_has_less_than_2_to_the_31_coordinates() -> None:
    sent = np.array([3]), pack_bits(np.array([0, 2, 1, 2]), 2)
    assert len(LEVELS.read(taken(*sent), SPEC, 4, {"bits": 2, "bucket": 2**31 - 1})) == 2
    with pytest.raises(WireError, match="bucket"):
        LEVELS.read(taken(*sent), SPEC, 4, {"bits": 2, "bucket": 2**31})
