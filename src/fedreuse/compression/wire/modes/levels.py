"""Coordinates as a few levels of their bucket's scale, in a few bits each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.compression.wire.block import Block, Mode, Notes, Take, add_mode, value_dtype
from fedreuse.compression.wire.packing import check_float, take_bits, unpack_bits, whole_note
from fedreuse.core.errors import WireError

if TYPE_CHECKING:
    from fedreuse.core.schema import TensorSpec

__all__ = ["LEVELS", "MAX_BUCKET", "spread", "top_level"]

MAX_BUCKET = 2**31 - 1


def _read(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    del count
    check_float(spec, "levels")
    bits, bucket = whole_note(notes, "bits", 2, 8), whole_note(notes, "bucket", 1, MAX_BUCKET)
    scales = take(value_dtype(spec), -(-spec.size // bucket))
    if (scales < 0).any():
        raise WireError(f"{spec.name}: a scale must not be negative")
    codes = take_bits(take, spec, bits, spec.size)
    # 2 top + 1 is odd, so the highest code has no level
    if unpack_bits(codes, bits, spec.size).max(initial=0) > 2 * top_level(bits):
        raise WireError(f"{spec.name}: a code above {2 * top_level(bits)}, the top level")
    return scales, codes


def _decode(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    scales, codes = block.fields
    top = top_level(notes["bits"])
    parts = (np.arange(-top, top + 1) / top).astype(spec.dtype)
    levels = parts[unpack_bits(codes, notes["bits"], spec.size)]
    with np.errstate(invalid="ignore"):
        return None, levels * spread(scales, notes["bucket"], spec.size)


LEVELS = add_mode(Mode(16, "levels", _read, _decode, has_count=False))


def top_level(bits: int) -> int:
    """Return the top level: 2 top + 1 codes fit into `bits` bits."""
    return int(2 ** (bits - 1) - 1)


def spread(scales: np.ndarray, bucket: int, size: int) -> np.ndarray:
    """Return the scale of each coordinate's bucket."""
    return np.repeat(scales, min(bucket, size))[:size]
