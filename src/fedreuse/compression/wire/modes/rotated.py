"""A rotated tensor in a few bits per coordinate: the seed of the rotation, a scale per bucket, and levels.

length = bucket, or the next power of two for a smaller tensor;  count = ceil(size / length) buckets
Coordinate j belongs to bucket j mod count: buckets are the columns of an array of `length` rows, padded with zeros.
value  = sign * scale * (H level)        both ends compute H level in integers, so it is bit-identical
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.compression.wire.block import Block, Mode, Notes, Take, add_mode, value_dtype
from fedreuse.compression.wire.hadamard import drawn_signs, hadamard
from fedreuse.compression.wire.packing import check_float, take_bits, unpack_bits, whole_note
from fedreuse.core.errors import WireError

if TYPE_CHECKING:
    from fedreuse.core.schema import TensorSpec

__all__ = ["LEVELS_OF", "MAX_BUCKET", "ROTATED", "UNIT", "bucket_shape", "levels_of", "with_signs"]

MAX_BUCKET = 2**16
UNIT = 4096
"""Levels are multiples of 1 / UNIT; with one bit there are only signs, whose magnitude does not matter."""
LEVELS_OF: dict[int, tuple[int, ...]] = {
    1: (1,),
    2: (1855, 6187),
    3: (1004, 3097, 5505, 8814),
    4: (526, 1589, 2690, 3860, 5146, 6628, 8475, 11193),
}
"""Positive levels by bits: the quantiser of the normal distribution with the least mean squared error (Lloyd-Max)."""


def bucket_shape(size: int, bucket: int) -> tuple[int, int]:
    """Return the number of coordinates of a bucket, and the number of buckets."""
    length = min(bucket, 1 << (size - 1).bit_length())
    return length, -(-size // length)


def levels_of(codes: np.ndarray, bits: int) -> np.ndarray:
    """Return the levels of codes: the lower bits select the magnitude, the highest bit is the sign."""
    levels = [*LEVELS_OF[bits], *(-level for level in LEVELS_OF[bits])]
    return np.array(levels, np.int16 if bits == 1 else np.int32).take(codes)


def with_signs(flat: np.ndarray, seed: np.uint64) -> np.ndarray:
    """Multiply values by the random signs of a seed; the result is a new, writable array."""
    width = flat.dtype.itemsize
    bits = drawn_signs(seed, len(flat)).astype(f"u{width}")
    bits <<= 8 * width - 1
    bits ^= flat.view(f"u{width}")
    return bits.view(flat.dtype)


def _read(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    del count
    check_float(spec, "rotated")
    bits, bucket = whole_note(notes, "bits", 1, max(LEVELS_OF)), whole_note(notes, "bucket", 1, MAX_BUCKET)
    if bucket & (bucket - 1):
        raise WireError(f"note bucket: a power of two expected, got {bucket}")
    if not spec.size:
        raise WireError(f"{spec.name}: an empty tensor cannot be rotated")
    length, num_buckets = bucket_shape(spec.size, bucket)
    seed, scales = take(np.dtype("<u8"), 1), take(value_dtype(spec), num_buckets)
    if (scales < 0).any():
        raise WireError(f"{spec.name}: a scale must not be negative")
    return seed, scales, take_bits(take, spec, bits, length * num_buckets)


def _decode(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    seed, scales, codes = block.fields
    length, num_buckets = bucket_shape(spec.size, notes["bucket"])
    bits = notes["bits"]
    levels = levels_of(unpack_bits(codes, bits, length * num_buckets), bits).reshape(length, num_buckets)
    if length > np.iinfo(np.int16).max:
        levels = levels.astype(np.int32, copy=False)  # a sum of this many signs would overflow int16
    with np.errstate(invalid="ignore", over="ignore"):  # a non-finite scale gives non-finite values, refused later
        turned = np.multiply(hadamard(levels), scales, dtype=np.dtype(spec.dtype))
    return None, with_signs(turned.reshape(-1)[: spec.size], seed[0])


ROTATED = add_mode(Mode(24, "rotated", _read, _decode, has_count=False))
