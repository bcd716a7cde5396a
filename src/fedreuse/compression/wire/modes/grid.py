"""Points of a uniform grid between a tensor's smallest and largest value, with Huffman-coded indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.compression.wire.block import Block, Mode, Notes, Take, add_mode, value_dtype
from fedreuse.compression.wire.huffman import MAX_LENGTH, SEGMENT, huffman_decode, is_complete
from fedreuse.compression.wire.packing import check_float, take_bits, unpack_bits
from fedreuse.core.errors import WireError

if TYPE_CHECKING:
    from fedreuse.core.schema import TensorSpec

__all__ = ["GRID", "LENGTH_BITS", "MAX_LEVELS"]

MAX_LEVELS = 2**14
LENGTH_BITS = 4


def _read(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    del count, notes
    check_float(spec, "a grid")
    ends = take(value_dtype(spec), 2)
    levels = take(np.dtype("<u2"), 1)
    num_levels = int(levels[0])
    span = float(ends[1]) - float(ends[0])
    if not 0 <= span < np.inf or not 1 <= num_levels <= MAX_LEVELS:
        raise WireError(f"{spec.name}: {num_levels} levels from {ends[0]} to {ends[1]} are not a valid grid")
    if num_levels == 1:
        return ends, levels
    lengths = take_bits(take, spec, LENGTH_BITS, num_levels)
    if not is_complete(unpack_bits(lengths, LENGTH_BITS, num_levels)):
        raise WireError(f"{spec.name}: the code lengths are not those of a Huffman code")
    segments = take(np.dtype("<u2"), -(-spec.size // SEGMENT))
    if (segments > SEGMENT * MAX_LENGTH).any():
        raise WireError(f"{spec.name}: a segment of more than {SEGMENT * MAX_LENGTH} bits")
    num_bits = int(segments.sum(dtype=np.int64))
    stream = take(np.dtype("u1"), -(-num_bits // 8))
    if num_bits % 8 and stream[-1] & (0xFF >> num_bits % 8):  # codes fill bytes from the top, so padding is below
        raise WireError(f"{spec.name}: bits beyond the last code")
    return ends, levels, lengths, segments, stream


def _decode(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    del notes
    (low, high), num_levels = block.fields[0].astype(np.float64), int(block.fields[1][0])
    points = (low + (high - low) * ((np.arange(num_levels) + 0.5) / num_levels)).astype(spec.dtype)
    if num_levels == 1:
        return None, np.full(spec.size, points[0])
    packed, segments, stream = block.fields[2:]
    lengths = unpack_bits(packed, LENGTH_BITS, num_levels)
    return None, points[huffman_decode(stream, segments, lengths, spec.size)]


GRID = add_mode(Mode(20, "grid", _read, _decode, has_count=False))
