"""Kept coordinates of one common magnitude: signs, and positions in Rice codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.compression.wire.block import Block, Mode, Notes, Take, add_mode, value_dtype
from fedreuse.compression.wire.packing import check_float, take_bits, unpack_bits
from fedreuse.compression.wire.rice import rice_decode, rice_width
from fedreuse.core.errors import WireError

if TYPE_CHECKING:
    from fedreuse.core.schema import TensorSpec

__all__ = ["TERNARY"]


def _read(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    del notes
    check_float(spec, "ternary")
    if not count:
        return ()
    magnitude = take(value_dtype(spec), 1)
    if magnitude[0] < 0:
        raise WireError(f"{spec.name}: a magnitude must not be negative")
    length = take(np.dtype("<u4"), 1)
    width = rice_width(count, spec.size)
    longest = -(-(count + (spec.size >> width)) // 8)  # a one per code, a zero per 2^width positions
    if int(length[0]) > longest:
        raise WireError(f"{spec.name}: a unary part of {length[0]} bytes, but {longest} reach the last position")
    unary = take(np.dtype("u1"), int(length[0]))
    num_marked = int(np.bitwise_count(unary).sum())
    if num_marked != count or not unary[-1]:
        raise WireError(f"{spec.name}: {num_marked} codes in {len(unary)} bytes, but the message says {count}")
    low = take_bits(take, spec, width, count)
    if rice_decode(unary, low, count, spec.size)[-1] >= spec.size:
        raise WireError(f"{spec.name}: positions must lie within 0..{spec.size - 1}")
    return magnitude, length, unary, low, take_bits(take, spec, 1, count)


def _decode(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    del notes
    if not block.count:
        return np.empty(0, np.int32), np.empty(0, spec.dtype)
    magnitude, _, unary, low, signs = block.fields
    positions = rice_decode(unary, low, block.count, spec.size).astype(np.int32)
    return positions, np.where(unpack_bits(signs, 1, block.count), -magnitude, magnitude)


TERNARY = add_mode(Mode(17, "ternary", _read, _decode))
