"""Kept coordinates at random positions: the seed of the positions and the values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.compression.wire.block import Block, Mode, Notes, Take, add_mode, value_dtype

if TYPE_CHECKING:
    from fedreuse.core.schema import TensorSpec

__all__ = ["SEEDED", "drawn_positions"]


def drawn_positions(seed: np.uint64, size: int, count: int) -> np.ndarray:
    """Return the increasing positions of the `count` smallest of `size` raw words of PCG64; ties: smaller position.

    Raw words are used because NumPy guarantees their stream across versions, and both ends must draw the same.
    """
    if not count:
        return np.empty(0, np.int32)
    keys = np.random.PCG64(int(seed)).random_raw(size)
    last = np.partition(keys, count - 1)[count - 1]  # the largest kept key; equal ones fill up by position
    kept = keys < last
    kept[np.flatnonzero(keys == last)[: count - int(np.count_nonzero(kept))]] = True
    return np.flatnonzero(kept).astype(np.int32)


def _read(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    del notes
    return take(np.dtype("<u8"), 1), take(value_dtype(spec), count)


def _decode(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    del notes
    seed, values = block.fields
    return drawn_positions(seed[0], spec.size, block.count), values


SEEDED = add_mode(Mode(19, "seeded", _read, _decode))
