"""Some rows of a tensor: marks of these rows, and a block of another mode for them alone."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.compression.wire.block import ABSENT, MODES, Block, Mode, Notes, Take, add_mode
from fedreuse.compression.wire.modes.packed import PACKED
from fedreuse.core.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fedreuse.core.schema import TensorSpec

__all__ = ["ROWS", "rows_block", "within_rows"]


def rows_block(inner: Block, rows: tuple[int, ...], num_rows: int) -> Block:
    """Return a block of some of a tensor's rows; the others are not part of the message."""
    marks = np.zeros(num_rows, np.bool_)
    marks[list(rows)] = True
    code = np.array([inner.mode.code], np.uint8)
    return Block(ROWS, inner.count, (np.packbits(marks, bitorder="little"), code, *inner.fields))


def within_rows(block: Block, spec: TensorSpec, change: Callable[[Block, TensorSpec], Block]) -> Block:
    """Apply `change` to the inner block; it gets the inner block and the spec of these rows alone."""
    marks, code, *fields = block.fields
    rows = np.flatnonzero(np.unpackbits(marks, count=spec.shape[0], bitorder="little"))
    inner = Block(MODES[int(code[0])], block.count, tuple(fields))
    return rows_block(change(inner, _narrow(spec, len(rows))), tuple(rows.tolist()), spec.shape[0])


def _read_rows(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    if not spec.shape:
        raise WireError(f"{spec.name}: a scalar has no rows")
    marks = take(np.dtype("u1"), ceil(spec.shape[0] / 8))
    padding, num_marked = -spec.shape[0] % 8, int(np.bitwise_count(marks).sum())
    if not num_marked or (padding and marks[-1] >> (8 - padding)):
        raise WireError(f"{spec.name}: no row is marked, or one beyond the last of {spec.shape[0]}")
    code = take(np.dtype("u1"), 1)
    mode = MODES.get(int(code[0]))
    if mode is None or mode in (ABSENT, ROWS, PACKED):
        raise WireError(f"{spec.name}: mode {int(code[0])} cannot represent some of the rows")
    narrow = _narrow(spec, num_marked)
    if count > narrow.size or (not mode.has_count and count != narrow.size):
        raise WireError(f"{spec.name}: {count} kept coordinates of {narrow.size} in the marked rows")
    return marks, code, *mode.read(take, narrow, count, notes)


def _decode_rows(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    marks, code, *fields = block.fields
    rows = np.flatnonzero(np.unpackbits(marks, count=spec.shape[0], bitorder="little"))
    narrow = _narrow(spec, len(rows))
    mode = MODES[int(code[0])]
    positions, values = mode.decode(Block(mode, block.count, tuple(fields)), narrow, notes)
    local = np.arange(narrow.size) if positions is None else positions
    width = spec.size // spec.shape[0]
    return (rows[local // width] * width + local % width).astype(np.int32), values


def _narrow(spec: TensorSpec, num_rows: int) -> TensorSpec:
    return replace(spec, shape=(num_rows, *spec.shape[1:]), rows=None)


ROWS = add_mode(Mode(10, "rows", _read_rows, _decode_rows, mask_fields=(0, 1)))
