"""What modes share when they write and read their fields: whole numbers of a few bits, and refusals.

Number j of width b occupies bits j b to j b + b - 1, counted from the least significant bit of the first byte. Bits
after the last number are zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.errors import WireError

if TYPE_CHECKING:
    from fedreuse.schema import TensorSpec
    from fedreuse.wire.block import Notes, Take

__all__ = ["check_float", "pack_bits", "take_bits", "unpack_bits", "whole_note"]

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
