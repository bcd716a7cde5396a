"""Coding of arrays as byte planes, each compressed: the n-th bytes of all numbers are stored together.

The first byte is the transform of the bits before they are split into planes, least significant byte first:

0  none
1  rotated: the sign moves from the top to the bottom, so that a float's exponent fills its top plane
2  zigzag: small integers of either sign have small patterns (for differences of bit patterns)
"""

from __future__ import annotations

import numpy as np

from fedreuse.compression.wire.entropy import ByteSource, squeeze

__all__ = ["code_planes", "expand_planes"]

_AS_IS, _ROTATED, _ZIGZAG = range(3)


def code_planes(values: np.ndarray) -> bytes:
    """Encode an array with the transform that makes it smallest."""
    width = values.dtype.itemsize
    patterns = values.view(f"<u{width}")
    if width == 1:
        return bytes([_AS_IS]) + squeeze(patterns)
    # floats may also be differences of bit patterns (the link delta), for which zigzag is smaller
    turns = (_ROTATED, _ZIGZAG) if values.dtype.kind == "f" else (_AS_IS, _ZIGZAG)
    coded = (bytes([turn]) + _code(_turn(patterns, turn)) for turn in turns)
    return min(coded, key=len)


def expand_planes(source: ByteSource, dtype: np.dtype[np.generic], count: int) -> np.ndarray:
    """Decode an array."""
    turn = source.number(_ZIGZAG)
    planes = np.empty((count, dtype.itemsize), np.uint8)
    for plane in range(dtype.itemsize):
        planes[:, plane] = source.expand(count)
    patterns = planes.view(f"<u{dtype.itemsize}").reshape(count)
    return _turn_back(patterns, turn).view(dtype.newbyteorder("<"))


def _code(patterns: np.ndarray) -> bytes:
    planes = patterns.view(np.uint8).reshape(-1, patterns.dtype.itemsize).T
    return b"".join(squeeze(plane) for plane in planes)


def _turn(patterns: np.ndarray, turn: int) -> np.ndarray:
    sign = _sign(patterns)
    turned = patterns
    if turn == _ROTATED:
        turned = patterns << 1 | sign
    elif turn == _ZIGZAG:
        turned = patterns << 1 ^ _spread(sign)
    return turned


def _turn_back(turned: np.ndarray, turn: int) -> np.ndarray:
    patterns = turned
    if turn == _ROTATED:
        patterns = turned >> 1 | turned << (8 * turned.dtype.itemsize - 1)
    elif turn == _ZIGZAG:
        patterns = turned >> 1 ^ _spread(turned & 1)
    return patterns


def _sign(patterns: np.ndarray) -> np.ndarray:
    sign: np.ndarray = patterns >> (8 * patterns.dtype.itemsize - 1)
    return sign


def _spread(bit: np.ndarray) -> np.ndarray:
    """Return patterns of all ones where the bit is set: 0 minus 1 wraps around."""
    spread: np.ndarray = bit.dtype.type(0) - bit
    return spread
