"""Lossless coding of a block of another mode, with mask and values each in the smallest of several forms.

Head: the code of the other mode (1 byte), its field bytes, the bytes of the coded mask, those of the coded values (each
a variable-length integer, see wire/entropy.py). Then the mask, then the values.

The modes dense, pairs and bitmap have a mask (dense: none) and values. The first byte of the values is the form:

0  as they are
1  planes          see wire/planes.py
2  against         see wire/reference_coding.py: float32 values against the numbers that the receiver holds

Of any other mode the fields are coded one by one: their number, and for each its bytes per number, its length and its
planes. The decoded block is bit-identical to that of the other mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.compression.wire.block import (
    ABSENT,
    BITMAP,
    DENSE,
    MODES,
    PAIRS,
    Block,
    Mode,
    Notes,
    Take,
    add_mode,
    marks_of,
    value_dtype,
)
from fedreuse.compression.wire.entropy import ByteSource, number
from fedreuse.compression.wire.masks import code_mask, expand_mask, num_rows
from fedreuse.compression.wire.planes import code_planes, expand_planes
from fedreuse.compression.wire.reference_coding import code_against, expand_against
from fedreuse.core.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fedreuse.core.schema import TensorSpec

__all__ = ["PACKED", "decode_packed", "pack_block"]

_RAW, _PLANES, _AGAINST = range(3)
_KNOWN = (DENSE, PAIRS, BITMAP)
_MAX_FIELDS = 8
_BYTE = np.dtype("u1")


def pack_block(block: Block, spec: TensorSpec, held: np.ndarray | None = None) -> Block:
    """Return the coded block, or the block itself if that is not smaller.

    Args:
        block: A block of any mode.
        spec: The tensor.
        held: The tensor's values that the receiver holds, if any.
    """
    if block.mode is ABSENT or not block.count:
        return block
    if block.mode in _KNOWN:
        positions, mask = _code_positions(block, spec)
        coded = _code_values(block.fields[-1], positions, spec, held)
    else:
        mask, coded = b"", b"".join(_code_fields(block.fields))
    sizes = number(block.field_bytes) + number(len(mask)) + number(len(coded))
    fields = (bytes([block.mode.code]) + sizes, mask, coded)
    packed = Block(PACKED, block.count, tuple(np.frombuffer(field, _BYTE) for field in fields))
    return packed if packed.body_bytes < block.body_bytes else block


def decode_packed(
    block: Block, spec: TensorSpec, notes: Notes, held: np.ndarray | None = None
) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the kept positions (None: all) and values of the other mode."""
    head = ByteSource(block.fields[0], spec.name)
    mode, field_bytes = _mode(head, spec), head.number(_most_bytes(spec))
    mask, coded = (ByteSource(field, spec.name) for field in block.fields[1:])
    if mode in _KNOWN:
        count = block.count
        if mode is DENSE and count != spec.size:
            raise WireError(f"{spec.name}: {count} values of {spec.size} are not dense")
        positions = None if mode is DENSE else expand_mask(mask, spec, count)
        values = _expand_values(coded, positions, spec, held)
        needed = values.nbytes + {DENSE: 0, PAIRS: 4 * count, BITMAP: -(-spec.size // 8)}[mode]
    else:
        inner = _expand_fields(coded, mode, block.count, spec, notes)
        positions, values = mode.decode(inner, spec, notes)
        needed = inner.field_bytes
    mask.close()
    coded.close()
    if needed != field_bytes:  # the ledger counts the stated field bytes, so they must be true
        raise WireError(f"{spec.name}: the message says {field_bytes} field bytes, but there are {needed}")
    return positions if positions is None else positions.astype(np.int32, copy=False), values


def _code_positions(block: Block, spec: TensorSpec) -> tuple[np.ndarray | None, bytes]:
    """Return the kept positions in the dtype that indexes fastest (None: all), and their encoding."""
    if block.mode is DENSE:
        return None, b""
    if block.mode is PAIRS:
        positions = block.fields[0].astype(np.intp)
        return positions, code_mask(positions, spec)
    bitmap = block.fields[0]
    positions = np.flatnonzero(marks_of(bitmap, spec.size))
    return positions, code_mask(positions, spec, bitmap)


def _code_values(values: np.ndarray, positions: np.ndarray | None, spec: TensorSpec, held: np.ndarray | None) -> bytes:
    if held is not None and values.dtype == np.float32:
        coded = code_against(values, held if positions is None else held.take(positions), _row_counts(positions, spec))
        if coded is not None and len(coded) < values.nbytes:
            return bytes([_AGAINST]) + coded
    planes = code_planes(values)
    return bytes([_PLANES]) + planes if len(planes) < values.nbytes else bytes([_RAW]) + values.tobytes()


def _expand_values(
    source: ByteSource, positions: np.ndarray | None, spec: TensorSpec, held: np.ndarray | None
) -> np.ndarray:
    form, dtype = source.number(_AGAINST), value_dtype(spec)
    count = spec.size if positions is None else len(positions)
    if form == _RAW:
        return source.take(count * dtype.itemsize).view(dtype)
    if form == _PLANES:
        return expand_planes(source, dtype, count)
    if held is None or dtype != np.float32:
        raise WireError(f"{spec.name}: coded against numbers that the receiver does not hold")
    return expand_against(source, held if positions is None else held.take(positions), _row_counts(positions, spec))


def _row_counts(positions: np.ndarray | None, spec: TensorSpec) -> np.ndarray:
    rows = num_rows(spec)
    starts = np.arange(rows + 1) * (spec.size // rows)
    return np.diff(starts if positions is None else np.searchsorted(positions, starts))


def _code_fields(fields: tuple[np.ndarray, ...]) -> Iterator[bytes]:
    yield number(len(fields))
    for field in fields:
        yield number(field.dtype.itemsize) + number(len(field)) + code_planes(field)


def _expand_fields(source: ByteSource, mode: Mode, count: int, spec: TensorSpec, notes: Notes) -> Block:
    """Decode the fields, which the mode itself then reads and checks."""
    most = _most_bytes(spec)
    pieces = []
    for _ in range(source.number(_MAX_FIELDS)):
        width = source.number(8)
        if width not in (1, 2, 4, 8):
            raise WireError(f"{spec.name}: numbers of {width} bytes")
        pieces.append(expand_planes(source, np.dtype(f"u{width}"), source.number(most // width)).view(_BYTE))
    inner = ByteSource(np.concatenate([np.empty(0, _BYTE), *pieces]), spec.name)

    def take(dtype: np.dtype[np.generic], length: int) -> np.ndarray:
        if length < 0:
            raise WireError(f"{spec.name}: an array of {length} numbers")
        return inner.take(dtype.itemsize * length).view(dtype)

    if not mode.has_count and count != spec.size:
        raise WireError(f"{spec.name}: {count} values of {spec.size}")
    block = Block(mode, count, mode.read(take, spec, count, notes))  # as if the fields had come in the message
    inner.close()
    return block


def _read(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    del count, notes
    code = take(_BYTE, 1)
    most = _most_bytes(spec)
    numbers = [_take_number(take, spec, most) for _ in range(3)]
    head = np.concatenate([code, *(digits for digits, _ in numbers)])
    _mode(ByteSource(head, spec.name), spec)
    return head, take(_BYTE, numbers[1][1]), take(_BYTE, numbers[2][1])


def _take_number(take: Take, spec: TensorSpec, most: int) -> tuple[np.ndarray, int]:
    digits = [take(_BYTE, 1)]
    while digits[-1][0] > 127 and len(digits) < 5:
        digits.append(take(_BYTE, 1))
    joined = np.concatenate(digits)
    return joined, ByteSource(joined, spec.name).number(most)


def _mode(head: ByteSource, spec: TensorSpec) -> Mode:
    code = int(head.take(1)[0])
    mode = MODES.get(code)
    if mode is None or mode in (ABSENT, PACKED):
        raise WireError(f"{spec.name}: mode {code} cannot be packed")
    return mode


def _most_bytes(spec: TensorSpec) -> int:
    """Return an upper bound on the bytes of a tensor in any mode."""
    return (spec.width + 5) * spec.size + 8448


def _decode(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    return decode_packed(block, spec, notes)


def _modelled(block: Block) -> int:
    """Return the field bytes of the other mode, which the head contains."""
    head = ByteSource(block.fields[0], "packed")
    head.take(1)
    return head.number(2**35)


PACKED = add_mode(Mode(21, "packed", _read, _decode, mask_fields=(1, 2), modelled=_modelled))
