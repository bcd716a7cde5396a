"""Rice codes of increasing positions: Golomb codes of the gaps, with a power of two as the divisor.

gap_i = position_i - position_(i-1) - 1             0 or more; position_(-1) = -1
b     = 1 + floor(log2(ln(phi - 1) / ln(1 - p)))    p = count / size, phi the golden ratio; at least 0
code  = gap >> b in unary (zeros, then a one), and the b low bits of the gap

All unary parts come first, then all low bits: the same number of bits as one code after another, but NumPy can read
them at once. With b = 0 the unary part is a bitmap that ends at its last mark.
"""

from __future__ import annotations

from math import floor, log, log2, sqrt

import numpy as np

from fedreuse.compression.wire.packing import pack_bits, unpack_bits

__all__ = ["rice_decode", "rice_encode", "rice_width"]


def rice_width(count: int, size: int) -> int:
    """Return b, the number of low bits of a gap if `count` of `size` positions are kept; both ends compute it."""
    if count >= size:
        return 0
    golden = (1 + sqrt(5)) / 2
    return max(0, 1 + floor(log2(log(golden - 1) / log(1 - count / size))))


def rice_encode(positions: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the unary part and the low bits of increasing positions, of which there must be at least one."""
    width = rice_width(len(positions), size)
    gaps = np.diff(positions, prepend=-1) - 1
    ends = np.cumsum((gaps >> width) + 1) - 1  # the one that ends each unary code
    marks = np.zeros(int(ends[-1]) + 1, np.bool_)
    marks[ends] = True
    return np.packbits(marks, bitorder="little"), pack_bits(gaps & ((1 << width) - 1), width)


def rice_decode(unary: np.ndarray, low: np.ndarray, count: int, size: int) -> np.ndarray:
    """Decode the positions; `unary` must hold `count` ones."""
    width = rice_width(count, size)
    ends = np.flatnonzero(np.unpackbits(unary, bitorder="little"))
    gaps = ((np.diff(ends, prepend=-1) - 1) << width) + unpack_bits(low, width, count)
    return np.cumsum(gaps + 1) - 1
