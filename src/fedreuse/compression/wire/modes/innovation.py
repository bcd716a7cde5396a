"""A tensor as the nearest of 2^b evenly spaced levels between -R and R, where R is its largest magnitude.

    step = 2 R / (2^b - 1)
    q    = floor((x + R) / step + 1/2)               in 0 .. 2^b - 1: b bits each
    x'   = q step - R                                |x' - x| <= R / (2^b - 1)

R is sent as a float32, rounded up. A tensor of zeros is R = 0 without levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.compression.wire.block import Block, Mode, Notes, Take, add_mode
from fedreuse.compression.wire.packing import check_float, pack_bits, take_bits, unpack_bits, whole_note
from fedreuse.core.errors import WireError

if TYPE_CHECKING:
    from fedreuse.core.schema import TensorSpec

__all__ = ["INNOVATION", "MAX_BITS", "innovation_block"]

MAX_BITS = 32


def innovation_block(flat: np.ndarray, bits: int) -> Block:
    """Encode a tensor in levels; the parcel's notes must contain `bits`."""
    radius = _radius(flat)
    scale = np.array([radius if radius < np.inf else np.nan], "<f4")
    if not 0 < radius < np.inf:
        return Block(INNOVATION, len(flat), (scale,))  # zeros, or non-finite values, which the receiver refuses
    nearest = np.floor((flat.astype(np.float64) + radius) / _step(radius, bits) + 0.5)
    levels = np.clip(nearest, 0, (1 << bits) - 1).astype(np.uint32)
    return Block(INNOVATION, len(flat), (scale, pack_bits(levels, bits)))


def _radius(flat: np.ndarray) -> float:
    """Return the largest magnitude, rounded up to a float32."""
    exact = float(np.max(np.abs(flat), initial=0.0))
    with np.errstate(over="ignore"):
        rounded = np.float32(exact)
    is_below = float(rounded) < exact  # compared in double precision
    return float(np.nextafter(rounded, np.float32(np.inf)) if is_below else rounded)


def _step(radius: float, bits: int) -> float:
    return 2 * radius / ((1 << bits) - 1)


def _read(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    check_float(spec, "levels")
    bits = whole_note(notes, "bits", 1, MAX_BITS)
    scale = take(np.dtype("<f4"), 1)
    if scale[0] < 0:
        raise WireError(f"{spec.name}: a scale must not be negative")
    return (scale, take_bits(take, spec, bits, count)) if 0 < scale[0] < np.inf else (scale,)


def _decode(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    radius = float(block.fields[0][0])
    if len(block.fields) == 1:
        return None, np.full(spec.size, radius, spec.dtype)
    bits = whole_note(notes, "bits", 1, MAX_BITS)
    levels = unpack_bits(block.fields[1], bits, spec.size)
    return None, (levels * _step(radius, bits) - radius).astype(spec.dtype)


INNOVATION = add_mode(Mode(8, "innovation", _read, _decode, has_count=False))
