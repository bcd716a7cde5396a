"""Coordinates of a tensor in a random subspace: the seed of the basis, and the coordinates.

length = bucket, or the next power of two for a smaller tensor;  m = ceil(size / length) buckets, the columns
y      = H D v            D: random signs of the seed, H: Walsh-Hadamard
sent   = k rows of y, drawn from the seed plus one, the same in every bucket
value  = D H y' * factor  y': the sent rows, zeros elsewhere; factor = 1 / k (unbiased) or 1 / length (projection)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.compression.wire.block import Block, Mode, Notes, Take, add_mode, value_dtype
from fedreuse.compression.wire.hadamard import hadamard
from fedreuse.compression.wire.modes.rotated import MAX_BUCKET, bucket_shape, with_signs
from fedreuse.compression.wire.modes.seeded import drawn_positions
from fedreuse.compression.wire.packing import check_float, whole_note
from fedreuse.core.errors import WireError

if TYPE_CHECKING:
    from fedreuse.core.schema import TensorSpec

__all__ = ["SUBSPACE", "drawn_rows"]


def drawn_rows(seed: np.uint64, length: int, count: int) -> np.ndarray:
    """Return the increasing numbers of the rows that are sent; signs use the same seed, so rows use the next one."""
    return drawn_positions(np.uint64((int(seed) + 1) % 2**64), length, count)


def _read(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    check_float(spec, "subspace")
    bucket = whole_note(notes, "bucket", 1, MAX_BUCKET)
    whole_note(notes, "unbiased", 0, 1)
    if bucket & (bucket - 1):
        raise WireError(f"note bucket: a power of two expected, got {bucket}")
    if not spec.size:
        raise WireError(f"{spec.name}: an empty tensor has no subspace")
    length, num_buckets = bucket_shape(spec.size, bucket)
    if not 1 <= count <= length:
        raise WireError(f"{spec.name}: {count} rows of {length}")
    return take(np.dtype("<u8"), 1), take(value_dtype(spec), count * num_buckets)


def _decode(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    seed, values = block.fields
    length, num_buckets = bucket_shape(spec.size, notes["bucket"])
    rotated = np.zeros((length, num_buckets), np.dtype(spec.dtype))
    rotated[drawn_rows(seed[0], length, block.count)] = values.reshape(block.count, num_buckets)
    with np.errstate(invalid="ignore", over="ignore"):  # non-finite values stay so, and are refused later
        turned = hadamard(rotated) / rotated.dtype.type(block.count if notes["unbiased"] else length)
    return None, with_signs(turned.reshape(-1)[: spec.size], seed[0])


SUBSPACE = add_mode(Mode(25, "subspace", _read, _decode))
