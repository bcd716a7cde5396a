"""One tensor as it travels: a mode and its numerical arrays, whose lengths are the field bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.errors import WireError

if TYPE_CHECKING:
    from fedreuse.schema import TensorSpec

__all__ = [
    "ABSENT",
    "BITMAP",
    "DENSE",
    "MODES",
    "PAIRS",
    "Block",
    "Mode",
    "absent_block",
    "dense_block",
    "sparse_block",
]


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """One tensor in one mode; `count` is the number of values it carries."""

    mode: Mode
    count: int
    fields: tuple[np.ndarray, ...]

    @property
    def field_bytes(self) -> int:
        """Bytes of the numerical fields: values, indices, bitmap."""
        return sum(field.nbytes for field in self.fields)


@dataclass(frozen=True, eq=False)
class Mode:
    """A way to write one tensor. The layout tells the arrays (dtype, length) from the tensor and the count alone."""

    code: int
    name: str
    layout: Callable[[TensorSpec, int], list[tuple[np.dtype[np.generic], int]]]
    positions: Callable[[Block, TensorSpec], np.ndarray | None]
    has_count: bool = True

    def values(self, block: Block) -> np.ndarray:
        """The carried values, which stand last."""
        return block.fields[-1]


def _stored(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    return dtype.newbyteorder("<")


def _value_dtype(spec: TensorSpec) -> np.dtype[np.generic]:
    return _stored(np.dtype(spec.dtype))


def _no_layout(spec: TensorSpec, count: int) -> list[tuple[np.dtype[np.generic], int]]:
    del spec, count
    return []


def _dense_layout(spec: TensorSpec, count: int) -> list[tuple[np.dtype[np.generic], int]]:
    if count != spec.size:
        raise WireError(f"{spec.name}: a dense tensor has {spec.size} values, the message says {count}")
    return [(_value_dtype(spec), spec.size)]


def _pairs_layout(spec: TensorSpec, count: int) -> list[tuple[np.dtype[np.generic], int]]:
    return [(np.dtype("<i4"), count), (_value_dtype(spec), count)]


def _bitmap_layout(spec: TensorSpec, count: int) -> list[tuple[np.dtype[np.generic], int]]:
    return [(np.dtype("u1"), ceil(spec.size / 8)), (_value_dtype(spec), count)]


def _no_positions(block: Block, spec: TensorSpec) -> None:
    del block, spec


def _pairs_positions(block: Block, spec: TensorSpec) -> np.ndarray:
    index = block.fields[0]
    if len(index) and (index[0] < 0 or index[-1] >= spec.size or (np.diff(index) <= 0).any()):
        raise WireError(f"{spec.name}: indices must increase within 0..{spec.size - 1}")
    return index


def _bitmap_positions(block: Block, spec: TensorSpec) -> np.ndarray:
    bits = np.unpackbits(block.fields[0], bitorder="little")
    positions = np.flatnonzero(bits)
    if len(positions) != block.count or (len(positions) and positions[-1] >= spec.size):
        raise WireError(f"{spec.name}: the bitmap marks {len(positions)} coordinates, the message says {block.count}")
    return positions.astype(np.int32)


ABSENT = Mode(0, "absent", _no_layout, _no_positions, has_count=False)
DENSE = Mode(1, "dense", _dense_layout, _no_positions, has_count=False)
PAIRS = Mode(2, "pairs", _pairs_layout, _pairs_positions)
BITMAP = Mode(3, "bitmap", _bitmap_layout, _bitmap_positions)
MODES = {mode.code: mode for mode in (ABSENT, DENSE, PAIRS, BITMAP)}


def absent_block() -> Block:
    """A tensor that this message leaves out."""
    return Block(ABSENT, 0, ())


def dense_block(values: np.ndarray) -> Block:
    """Every coordinate."""
    return Block(DENSE, len(values), (values.astype(_stored(values.dtype), copy=False),))


def sparse_block(positions: np.ndarray, values: np.ndarray, size: int) -> Block:
    """The kept coordinates in the smallest of the three modes (ties: dense, then bitmap)."""
    width, count = values.dtype.itemsize, len(values)
    dense, bitmap, pairs = size * width, count * width + ceil(size / 8), count * (width + 4)
    if dense <= min(bitmap, pairs):
        flat = np.zeros(size, values.dtype)
        flat[positions] = values
        return dense_block(flat)
    values = values.astype(_stored(values.dtype), copy=False)
    if bitmap <= pairs:
        marks = np.zeros(size, np.bool_)
        marks[positions] = True
        return Block(BITMAP, count, (np.packbits(marks, bitorder="little"), values))
    return Block(PAIRS, count, (positions.astype("<i4", copy=False), values))
