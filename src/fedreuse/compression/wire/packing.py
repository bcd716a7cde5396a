"""What modes share when they write and read their fields: whole numbers of a few bits, and refusals.

Number j of width b occupies bits j b to j b + b - 1, counted from the least significant bit of the first byte. Bits
after the last number are zero. Numbers may also have widths of their own, of at most 25 bits: each begins where the one
before it ends.
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
"""Widths of which whole numbers fit into a byte."""


def pack_bits(numbers: np.ndarray, width: int) -> np.ndarray:
    """Numbers below 2^width, `width` bits each, in as few bytes as they need; width 0 to 32."""
    if width in _SHARES:
        return _pack_shares(numbers, width)
    whole = _holder(width)
    rows = numbers.astype(whole).view(_BYTE).reshape(len(numbers), whole.itemsize)
    return np.packbits(np.unpackbits(rows, axis=1, bitorder="little")[:, :width], bitorder="little")


def unpack_bits(packed: np.ndarray, width: int, count: int) -> np.ndarray:
    """The numbers again."""
    if width in _SHARES:
        return _unpack_shares(packed, width, count)
    whole = _holder(width)
    bits = np.unpackbits(packed, count=count * width, bitorder="little").reshape(count, width)
    rows = np.zeros((count, whole.itemsize), _BYTE)
    rows[:, : -(-width // 8)] = np.packbits(bits, axis=1, bitorder="little")
    return rows.view(whole).reshape(count)


def _pack_shares(numbers: np.ndarray, width: int) -> np.ndarray:
    """Numbers that share bytes evenly: each place of a byte is filled for all bytes at once."""
    if width == 1:
        return np.packbits(numbers.astype(_BYTE, copy=False), bitorder="little")
    per_byte = 8 // width
    rows = np.zeros((-(-len(numbers) // per_byte), per_byte), _BYTE)
    rows.reshape(-1)[: len(numbers)] = numbers
    packed = rows[:, 0].copy()
    for place in range(1, per_byte):
        packed |= rows[:, place] << (place * width)
    return packed


def _unpack_shares(packed: np.ndarray, width: int, count: int) -> np.ndarray:
    if width == 1:
        return np.unpackbits(packed, count=count, bitorder="little")
    rows = np.empty((len(packed), 8 // width), _BYTE)
    for place in range(8 // width):
        np.bitwise_and(packed >> (place * width), 2**width - 1, out=rows[:, place])
    return rows.reshape(-1)[:count]


def pack_widths(numbers: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Numbers, each below 2^its width (at most 25), one after another in as few bytes as they need."""
    starts, num_bits = _starts(widths)
    shifted = numbers.astype(np.uint64)
    shifted <<= (starts & 31).view(np.uint64)
    sums = np.zeros((num_bits >> 5) + 1, np.uint64)
    np.add.at(sums, starts >> 5, shifted)  # what begins in a word of 32 bits, and may reach into the next
    words = np.zeros(len(sums) + 1, "<u4")
    words[:-1] = sums
    words[1:] |= (sums >> np.uint64(32)).astype(np.uint32)
    return words.view(_BYTE)[: -(-num_bits // 8)]


def look_at_widths(packed: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """The 32 bits from where each number begins: the number, and above it whatever follows."""
    starts, _ = _starts(widths)
    words = np.zeros(len(packed) // 4 + 2, "<u4")
    words.view(_BYTE)[: len(packed)] = packed
    windows = words[1:].astype(np.uint64)  # each word with the one after it
    windows <<= np.uint64(32)
    windows |= words[:-1]
    found = windows.take(starts >> 5, mode="clip")  # none is beyond the end; clipping is what NumPy does fastest
    starts &= 31
    found >>= starts.view(np.uint64)
    return found.astype(np.uint32)


def _starts(widths: np.ndarray) -> tuple[np.ndarray, int]:
    """The bit at which each number begins, and how many bits all have."""
    ends = np.zeros(len(widths) + 1, np.int64)
    np.cumsum(widths, out=ends[1:])
    return ends[:-1], int(ends[-1])


def take_bits(take: Take, spec: TensorSpec, width: int, count: int) -> np.ndarray:
    """The packed numbers off a message; refuses anything but zeros behind the last."""
    num_bits = width * count
    packed = take(_BYTE, -(-num_bits // 8))
    if num_bits % 8 and packed[-1] >> (num_bits % 8):
        raise WireError(f"{spec.name}: bits beyond the last of {count} numbers")
    return packed


def whole_note(notes: Notes, name: str, low: int, high: int) -> int:
    """A whole number from the notes of a parcel, within its bounds."""
    number = notes.get(name) if isinstance(notes, dict) else None
    if type(number) is not int or not low <= number <= high:
        raise WireError(f"note {name}: a whole number from {low} to {high} expected, got {number!r}")
    return number


def check_float(spec: TensorSpec, mode: str) -> None:
    """Refuse a mode of approximations for a tensor of whole numbers."""
    if np.dtype(spec.dtype).kind != "f":
        raise WireError(f"{spec.name}: {spec.dtype} cannot be written as {mode}")


def _holder(width: int) -> np.dtype[np.generic]:
    return np.dtype("u1" if width <= 8 else "<u2" if width <= 16 else "<u4")
