"""Bit packing of integers, and checks that modes share.

Number j of width b occupies bits j b to j b + b - 1, counted from the least significant bit of the first byte. Bits
after the last number are zero. Numbers may also have individual widths of at most 25 bits: each begins where the
previous one ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import WireError

if TYPE_CHECKING:
    from fedreuse.compression.wire.block import Notes, Take
    from fedreuse.core.schema import TensorSpec

__all__ = [
    "check_float",
    "look_at_widths",
    "pack_bits",
    "pack_widths",
    "take_bits",
    "unpack_bits",
    "whole_note",
]

_BYTE = np.dtype("u1")
_SHARES = (1, 2, 4)
"""Widths that divide a byte evenly."""


def pack_bits(numbers: np.ndarray, width: int) -> np.ndarray:
    """Pack numbers below 2^width in `width` bits each, from 0 to 32."""
    if width in _SHARES:
        return _pack_shares(numbers, width)
    whole = _holder(width)
    # one row of bits per number, cut to the width
    rows = numbers.astype(whole).view(_BYTE).reshape(len(numbers), whole.itemsize)
    return np.packbits(np.unpackbits(rows, axis=1, bitorder="little")[:, :width], bitorder="little")


def unpack_bits(packed: np.ndarray, width: int, count: int) -> np.ndarray:
    """Unpack `count` numbers of `width` bits."""
    if width in _SHARES:
        return _unpack_shares(packed, width, count)
    whole = _holder(width)
    bits = np.unpackbits(packed, count=count * width, bitorder="little").reshape(count, width)
    rows = np.zeros((count, whole.itemsize), _BYTE)
    rows[:, : -(-width // 8)] = np.packbits(bits, axis=1, bitorder="little")
    return rows.view(whole).reshape(count)


def _pack_shares(numbers: np.ndarray, width: int) -> np.ndarray:
    """Pack numbers whose width divides 8: each slot of a byte is filled for all bytes at once."""
    if width == 1:
        return np.packbits(numbers.astype(_BYTE, copy=False), bitorder="little")
    per_byte = 8 // width
    rows = np.zeros((-(-len(numbers) // per_byte), per_byte), _BYTE)
    rows.reshape(-1)[: len(numbers)] = numbers
    packed = rows[:, 0].copy()
    for slot in range(1, per_byte):
        packed |= rows[:, slot] << (slot * width)
    return packed


def _unpack_shares(packed: np.ndarray, width: int, count: int) -> np.ndarray:
    if width == 1:
        return np.unpackbits(packed, count=count, bitorder="little")
    rows = np.empty((len(packed), 8 // width), _BYTE)
    for slot in range(8 // width):
        np.bitwise_and(packed >> (slot * width), 2**width - 1, out=rows[:, slot])
    return rows.reshape(-1)[:count]


def pack_widths(numbers: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Pack numbers of individual widths (at most 25 bits) one after another."""
    starts, num_bits = _starts(widths)
    shifted = numbers.astype(np.uint64)
    shifted <<= (starts & 31).view(np.uint64)
    sums = np.zeros((num_bits >> 5) + 1, np.uint64)
    # all numbers that begin in a word of 32 bits are added up in 64 bits; the upper half belongs to the next word
    np.add.at(sums, starts >> 5, shifted)
    words = np.zeros(len(sums) + 1, "<u4")
    words[:-1] = sums
    words[1:] |= (sums >> np.uint64(32)).astype(np.uint32)
    return words.view(_BYTE)[: -(-num_bits // 8)]


def look_at_widths(packed: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return the 32 bits that start at each number: the number, and above it the bits of its successors."""
    starts, _ = _starts(widths)
    words = np.zeros(len(packed) // 4 + 2, "<u4")
    words.view(_BYTE)[: len(packed)] = packed
    windows = words[1:].astype(np.uint64)  # each word with its successor in the upper half
    windows <<= np.uint64(32)
    windows |= words[:-1]
    selected = windows.take(starts >> 5, mode="clip")  # none is beyond the end; "clip" is NumPy's fastest mode
    starts &= 31
    selected >>= starts.view(np.uint64)
    return selected.astype(np.uint32)


def _starts(widths: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the bit at which each number begins, and the number of bits of all."""
    ends = np.zeros(len(widths) + 1, np.int64)
    np.cumsum(widths, out=ends[1:])
    return ends[:-1], int(ends[-1])


def take_bits(take: Take, spec: TensorSpec, width: int, count: int) -> np.ndarray:
    """Read packed numbers from a message; raise WireError unless the bits after the last are zero."""
    num_bits = width * count
    packed = take(_BYTE, -(-num_bits // 8))
    if num_bits % 8 and packed[-1] >> (num_bits % 8):
        raise WireError(f"{spec.name}: bits beyond the last of {count} numbers")
    return packed


def whole_note(notes: Notes, name: str, low: int, high: int) -> int:
    """Return an integer from the notes of a parcel; raise WireError if it is absent or out of bounds."""
    number = notes.get(name) if isinstance(notes, dict) else None
    if type(number) is not int or not low <= number <= high:
        raise WireError(f"note {name}: an integer from {low} to {high} expected, got {number!r}")
    return number


def check_float(spec: TensorSpec, mode: str) -> None:
    """Raise WireError for a lossy mode of an integer tensor."""
    if np.dtype(spec.dtype).kind != "f":
        raise WireError(f"{spec.name}: {spec.dtype} cannot be written as {mode}")


def _holder(width: int) -> np.dtype[np.generic]:
    return np.dtype("u1" if width <= 8 else "<u2" if width <= 16 else "<u4")
