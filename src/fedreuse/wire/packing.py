"""What modes share when they write and read their fields: whole numbers of a few bits, and refusals.

Number j of width b occupies bits j b to j b + b - 1, counted from the least significant bit of the first byte. Bits
after the last number are zero. Numbers may also have widths of their own, of at most 25 bits: each begins where the one
before it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.errors import WireError

if TYPE_CHECKING:
    from fedreuse.schema import TensorSpec
    from fedreuse.wire.block import Notes, Take

__all__ = [
    "check_float",
    "pack_bits",
    "pack_widths",
    "take_bits",
    "unpack_bits",
    "unpack_widths",
    "whole_note",
]

_BYTE = np.dtype("u1")


def pack_bits(numbers: np.ndarray, width: int) -> np.ndarray:
    """Numbers below 2^width, `width` bits each, in as few bytes as they need; width 0 to 32."""
    whole = _holder(width)
    rows = numbers.astype(whole).view(_BYTE).reshape(len(numbers), whole.itemsize)
    return np.packbits(np.unpackbits(rows, axis=1, bitorder="little")[:, :width], bitorder="little")


def unpack_bits(packed: np.ndarray, width: int, count: int) -> np.ndarray:
    """The numbers again."""
    whole = _holder(width)
    bits = np.unpackbits(packed, count=count * width, bitorder="little").reshape(count, width)
    rows = np.zeros((count, whole.itemsize), _BYTE)
    rows[:, : -(-width // 8)] = np.packbits(bits, axis=1, bitorder="little")
    return rows.view(whole).reshape(count)


def pack_widths(numbers: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Numbers, each below 2^its width (at most 25), one after another in as few bytes as they need."""
    if len(widths) % 2:
        numbers, widths = np.append(numbers, numbers.dtype.type(0)), np.append(widths, widths.dtype.type(0))
    pairs = numbers[1::2].astype(np.uint64)
    pairs <<= widths[::2].astype(np.uint64)
    pairs |= numbers[::2].astype(np.uint64)
    words, shifts, num_bits = _places(widths)
    packed = np.zeros((num_bits >> 6) + 2, "<u8")
    np.add.at(packed, words, pairs << shifts)  # no two share a bit, so that adding is joining
    np.add.at(packed[1:], words, pairs >> np.uint64(1) >> np.uint64(63) - shifts)
    return packed.view(_BYTE)[: -(-num_bits // 8)]


def unpack_widths(packed: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """The numbers again; `packed` has exactly the bytes they need."""
    count = len(widths)
    if count % 2:
        widths = np.append(widths, widths.dtype.type(0))
    places, shifts, _ = _places(widths)
    words = np.zeros(len(packed) // 8 + 2, "<u8")
    words.view(_BYTE)[: len(packed)] = packed
    pairs = words.take(places)
    pairs >>= shifts
    pairs |= words[1:].take(places) << np.uint64(1) << np.uint64(63) - shifts
    first, second = widths[::2].astype(np.uint64), widths[1::2].astype(np.uint64)
    numbers: np.ndarray = pairs >> first & _ones(second)
    numbers <<= np.uint64(32)
    numbers |= pairs & _ones(first)
    return numbers.astype("<u8", copy=False).view("<u4")[:count]


def _places(widths: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Where each two numbers begin: in which word of 64 bits, at which bit of it; and all bits. Two fit into a word."""
    starts = np.zeros(len(widths) // 2 + 1, np.int64)
    np.cumsum(widths[::2] + widths[1::2], out=starts[1:])
    return starts[:-1] >> 6, (starts[:-1] & 63).view(np.uint64), int(starts[-1])


def _ones(widths: np.ndarray) -> np.ndarray:
    ones: np.ndarray = (np.uint64(1) << widths) - np.uint64(1)
    return ones


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
