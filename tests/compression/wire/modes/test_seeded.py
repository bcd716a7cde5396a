"""Positions that a seed draws: the same at both ends, sorted, never more than there are."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.wire.block import MODES, Block
from fedreuse.compression.wire.modes.seeded import SEEDED, drawn_positions
from fedreuse.core.errors import WireError
from fedreuse.core.schema import TensorSpec

SPEC = TensorSpec("a", (4,))


def taken(*arrays: np.ndarray):
    """Hands out these arrays in order, whatever is asked for."""
    left = iter(arrays)
    return lambda dtype, length: next(left).astype(dtype)[:length]


def test_the_seed_stands_for_the_positions() -> None:
    assert MODES[19] is SEEDED
    seed = np.uint64(7)
    drawn = drawn_positions(seed, 4, 2)
    keys = np.random.PCG64(7).random_raw(4)
    assert drawn.tolist() == sorted(np.argsort(keys)[:2].tolist())
    block = Block(SEEDED, 2, (np.array([seed], "<u8"), np.array([5, 6], np.float32)))
    positions, values = SEEDED.decode(block, SPEC, {})
    assert positions is not None
    assert (positions.tolist(), values.tolist()) == (drawn.tolist(), [5, 6])


@pytest.mark.parametrize("count", [0, 4])
def test_none_and_all(count: int) -> None:
    assert drawn_positions(np.uint64(1), 4, count).tolist() == list(range(count))


def test_a_message_that_ends_early_is_refused() -> None:
    def take(dtype: np.dtype, length: int) -> np.ndarray:
        raise WireError(f"{length} numbers that are not there")

    with pytest.raises(WireError, match="not there"):
        SEEDED.read(take, SPEC, 2, {})


@pytest.mark.parametrize("count", [2, 300, 999])
def test_the_smallest_keys_are_drawn(count: int) -> None:
    for seed in range(5):
        keys = np.random.PCG64(seed).random_raw(1000)
        wanted = sorted(np.argsort(keys)[:count].tolist())
        assert drawn_positions(np.uint64(seed), 1000, count).tolist() == wanted
