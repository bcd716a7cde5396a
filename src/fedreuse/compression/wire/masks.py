"""Coding of masks (the positions of a block's coordinates): the smallest of a bitmap, bitmaps by row, and gaps.

The first byte is the form:

0  bitmap   ceil(d / 8) bytes, compressed
1  rows     the bitmap of each row, in whole bytes, by classes (see wire/classes.py)
2  gaps     the differences of positions minus one, in 1, 2 or 4 bytes as d requires; as byte planes, each compressed

Rows of a layer differ in density, and those of similar density have similar statistics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.compression.wire.block import bitmap_of, marks_of
from fedreuse.compression.wire.classes import code_rows, count_classes, expand_rows
from fedreuse.compression.wire.entropy import ByteSource, squeeze
from fedreuse.core.errors import WireError

if TYPE_CHECKING:
    from fedreuse.core.schema import TensorSpec

__all__ = ["code_mask", "expand_mask", "num_rows"]

_BITMAP, _ROWS, _GAPS = range(3)
_SPARSE = 32
"""Gaps are used if fewer than one coordinate in 32 is kept, bitmaps otherwise."""


def num_rows(spec: TensorSpec) -> int:
    """Return the number of slices along the first axis; 1 for tensors of fewer than two axes."""
    return spec.shape[0] if len(spec.shape) > 1 and spec.size else 1


def code_mask(positions: np.ndarray, spec: TensorSpec, bitmap: np.ndarray | None = None) -> bytes:
    """Encode increasing positions; `bitmap` are the same as bits, if already computed."""
    if len(positions) * _SPARSE < spec.size:
        gaps = np.diff(positions, prepend=positions.dtype.type(-1)) - 1
        width = _width(spec.size)
        planes = gaps.astype(f"<u{width}").view(np.uint8).reshape(-1, width).T
        return bytes([_GAPS]) + b"".join(squeeze(plane) for plane in planes)
    if bitmap is None:
        bitmap = bitmap_of(positions, spec.size)
    whole = bytes([_BITMAP]) + squeeze(bitmap)
    rows = num_rows(spec)
    if rows == 1:
        return whole
    width = spec.size // rows
    # rows of whole bytes are consecutive in the bitmap already; others are padded
    bitmaps = bitmap if width % 8 == 0 else _bitmaps_of_rows(marks_of(bitmap, spec.size).reshape(rows, width))
    lengths = np.full(rows, -(-width // 8))
    if count_classes(lengths) == 1 and width % 8 == 0:
        return whole  # the form by rows would be the same bytes
    densities = np.bitwise_count(bitmaps.reshape(rows, -1)).sum(axis=1)
    by_rows = bytes([_ROWS]) + code_rows(bitmaps, lengths, densities)
    return min(whole, by_rows, key=len)


def expand_mask(source: ByteSource, spec: TensorSpec, count: int) -> np.ndarray:
    """Decode the positions; raise WireError unless exactly `count` are marked within the tensor."""
    form = source.number(_GAPS)
    if form == _GAPS:
        positions = _expand_gaps(source, count, _width(spec.size))
    else:
        rows = num_rows(spec) if form == _ROWS else 1
        positions = np.flatnonzero(_expand_bitmaps(source, rows, spec.size // rows))
    if len(positions) != count or (count and positions[-1] >= spec.size):
        raise WireError(f"{spec.name}: {len(positions)} coordinates are marked, but the message says {count}")
    return positions


def _bitmaps_of_rows(marks: np.ndarray) -> np.ndarray:
    return np.packbits(marks, axis=1, bitorder="little").reshape(-1)


def _expand_bitmaps(source: ByteSource, rows: int, width: int) -> np.ndarray:
    row_bytes = -(-width // 8)
    bitmaps = expand_rows(source, np.full(rows, row_bytes)).reshape(rows, row_bytes)
    if width % 8 and (bitmaps[:, -1] >> width % 8).any():
        raise WireError(f"{source.name}: a mark beyond the last coordinate of a row")
    if width % 8 == 0:
        return marks_of(bitmaps.reshape(-1), rows * width)  # unpacking one long row is faster than many
    return np.unpackbits(bitmaps, axis=1, count=width, bitorder="little").view(np.bool_)


def _expand_gaps(source: ByteSource, count: int, width: int) -> np.ndarray:
    planes = np.empty((count, width), np.uint8)
    for plane in range(width):
        planes[:, plane] = source.expand(count)
    gaps = planes.view(f"<u{width}").reshape(count)
    positions: np.ndarray = np.cumsum(gaps, dtype=np.int64) + np.arange(count)
    return positions


def _width(size: int) -> int:
    return 1 if size <= 1 << 8 else 2 if size <= 1 << 16 else 4
