"""Blocks: the encoded form of one tensor, a mode and its numerical arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.errors import WireError

if TYPE_CHECKING:
    from fedreuse.core.schema import TensorSpec

__all__ = [
    "ABSENT",
    "BITMAP",
    "DENSE",
    "MODES",
    "PAIRS",
    "Block",
    "Mode",
    "Notes",
    "Take",
    "absent_block",
    "add_mode",
    "bitmap_of",
    "dense_block",
    "marks_of",
    "positions_of",
    "read_bitmap",
    "read_positions",
    "sparse_block",
    "to_little_endian",
    "value_dtype",
]

Notes = Mapping[str, Any]
"""Small values of a parcel that its modes need, such as the number of bits of a level."""
Take = Callable[[np.dtype[np.generic], int], np.ndarray]
"""A function that reads the next array of a dtype and length from a message, and raises WireError at its end."""


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """One tensor in one mode; `count` is the number of values it contains."""

    mode: Mode
    count: int
    fields: tuple[np.ndarray, ...]

    @property
    def field_bytes(self) -> int:
        """Bytes of the numerical fields (values, indices, bitmap); for a packed block, before it was packed."""
        return self.body_bytes if self.mode.modelled is None else self.mode.modelled(self)

    @property
    def body_bytes(self) -> int:
        """Bytes in the message after its header."""
        return sum(field.nbytes for field in self.fields)

    @property
    def mask_bytes(self) -> int:
        """Bytes of the positions of the coordinates."""
        start, end = self.mode.mask_fields
        return sum(field.nbytes for field in self.fields[start:end])

    @property
    def head_bytes(self) -> int:
        """Bytes that describe the fields that follow; only packed blocks have any."""
        return sum(field.nbytes for field in self.fields[: self.mode.mask_fields[0]])


@dataclass(frozen=True, eq=False)
class Mode:
    """A representation of one tensor.

    Attributes:
        code: Identifies the mode on the wire; never changes.
        name: Identifies the mode in the ledger and in reports.
        read: Reads the fields from a message, given the tensor, the count and the parcel's notes; raises WireError for
            invalid content.
        decode: Returns the flat positions (None: all) and their values.
        has_count: Whether the header contains the number of values; if not, it is the tensor's size.
        mask_fields: Range of the fields with the positions: the first, and one after the last. Fields before them are
            the head.
        modelled: Returns the field bytes of a mode that packs another one; None: the bytes in the message.
    """

    code: int
    name: str
    read: Callable[[Take, TensorSpec, int, Notes], tuple[np.ndarray, ...]]
    decode: Callable[[Block, TensorSpec, Notes], tuple[np.ndarray | None, np.ndarray]]
    has_count: bool = True
    mask_fields: tuple[int, int] = (0, 0)
    modelled: Callable[[Block], int] | None = None


MODES: dict[int, Mode] = {}


def add_mode(mode: Mode) -> Mode:
    """Register a mode with the decoder; codes are part of the wire format and never change."""
    for known in MODES.values():
        if mode.code == known.code or mode.name == known.name:
            raise ValueError(f"mode {mode.code} ({mode.name}): {known.code} is already {known.name}")
    MODES[mode.code] = mode
    return mode


def value_dtype(spec: TensorSpec) -> np.dtype[np.generic]:
    """Return the tensor's dtype on the wire, which is little-endian."""
    return np.dtype(spec.dtype).newbyteorder("<")


def _read_absent(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    del take, spec, count, notes
    return ()


def _decode_absent(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    del block, notes
    return None, np.empty(0, spec.dtype)


def _read_dense(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    del count, notes
    return (take(value_dtype(spec), spec.size),)


def _decode_dense(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    del spec, notes
    return None, block.fields[0]


def read_positions(take: Take, spec: TensorSpec, count: int) -> np.ndarray:
    """Read positions of 32 bits from a message; raise WireError unless they increase within the tensor."""
    index = take(np.dtype("<i4"), count)
    # compared, not subtracted: a difference of 32-bit numbers can wrap around and look like an increase
    if count and (index[0] < 0 or index[-1] >= spec.size or (index[1:] <= index[:-1]).any()):
        raise WireError(f"{spec.name}: indices must increase within 0..{spec.size - 1}")
    return index


def _read_pairs(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    del notes
    return read_positions(take, spec, count), take(value_dtype(spec), count)


def _decode_pairs(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    del spec, notes
    return block.fields[0], block.fields[1]


def bitmap_of(positions: np.ndarray, size: int) -> np.ndarray:
    """Return one bit per coordinate, least significant first."""
    marks = np.zeros(size, np.bool_)
    marks[positions] = True
    return np.packbits(marks, bitorder="little")


def marks_of(bitmap: np.ndarray, size: int) -> np.ndarray:
    """Return one flag per coordinate."""
    return np.unpackbits(bitmap, count=size, bitorder="little").view(np.bool_)


def positions_of(bitmap: np.ndarray, size: int) -> np.ndarray:
    """Return the marked positions."""
    return np.flatnonzero(marks_of(bitmap, size)).astype(np.int32)


def read_bitmap(take: Take, spec: TensorSpec, count: int) -> np.ndarray:
    """Read a bitmap from a message; raise WireError unless it marks `count` coordinates within the tensor."""
    bits = take(np.dtype("u1"), ceil(spec.size / 8))
    num_marked = int(np.bitwise_count(bits).sum())
    padding = -spec.size % 8  # bits beyond the tensor, which must be zero
    if num_marked != count or (padding and bits[-1] >> (8 - padding)):
        raise WireError(f"{spec.name}: the bitmap marks {num_marked} coordinates, but the message says {count}")
    return bits


def _read_bitmap(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    del notes
    return read_bitmap(take, spec, count), take(value_dtype(spec), count)


def _decode_bitmap(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    del notes
    return positions_of(block.fields[0], spec.size), block.fields[1]


ABSENT = add_mode(Mode(0, "absent", _read_absent, _decode_absent, has_count=False))
DENSE = add_mode(Mode(1, "dense", _read_dense, _decode_dense, has_count=False))
PAIRS = add_mode(Mode(2, "pairs", _read_pairs, _decode_pairs, mask_fields=(0, 1)))
BITMAP = add_mode(Mode(3, "bitmap", _read_bitmap, _decode_bitmap, mask_fields=(0, 1)))


def absent_block() -> Block:
    """Return the block of a tensor that the message leaves out."""
    return Block(ABSENT, 0, ())


def dense_block(values: np.ndarray) -> Block:
    """Return a block of all coordinates."""
    return Block(DENSE, len(values), (to_little_endian(values),))


def sparse_block(positions: np.ndarray, values: np.ndarray, size: int, marks: np.ndarray | None = None) -> Block:
    """Return a block of some coordinates in the smallest of three modes (ties: dense, then bitmap).

    Args:
        positions: Increasing flat positions.
        values: Their values.
        size: Number of coordinates of the tensor.
        marks: The positions as one flag per coordinate, if already computed.
    """
    width, count = values.dtype.itemsize, len(values)
    dense, bitmap, pairs = size * width, count * width + ceil(size / 8), count * (width + 4)
    if dense <= min(bitmap, pairs):
        flat = np.zeros(size, values.dtype)
        flat[positions] = values
        return dense_block(flat)
    if bitmap <= pairs:
        mask = bitmap_of(positions, size) if marks is None else np.packbits(marks, bitorder="little")
        return Block(BITMAP, count, (mask, to_little_endian(values)))
    return Block(PAIRS, count, (positions.astype("<i4", copy=False), to_little_endian(values)))


def to_little_endian(values: np.ndarray) -> np.ndarray:
    """Return the values in the byte order of the wire."""
    return values.astype(values.dtype.newbyteorder("<"), copy=False)
