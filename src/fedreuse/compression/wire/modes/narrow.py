"""Kept coordinates with values rounded to fewer bits, and positions as in the other sparse modes.

The parcel's note `values` is the format, which determines the fields:

    fp16   IEEE half precision, to nearest even; values too large for it become infinite, and the receiver refuses them
    bf16   the upper half of a float32, to nearest even
    int8   scale R = max |v| / 127 (32-bit float, rounded up), then q = rint(v / R), 8 bits with sign
    int4   scale R = max |v| / 7, then q + 8, 4 bits each

Before them: nothing if all d coordinates are kept, a bitmap of ceil(d / 8) bytes if that is not longer than 4 k bytes,
otherwise k positions of 32 bits. If the largest magnitude is 0 or not finite, int8 and int4 consist of the scale alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from fedreuse.compression.wire.block import (
    Block,
    Mode,
    Notes,
    Take,
    add_mode,
    bitmap_of,
    positions_of,
    read_bitmap,
    read_positions,
)
from fedreuse.compression.wire.packing import check_float, pack_bits, take_bits, unpack_bits
from fedreuse.core.errors import WireError

if TYPE_CHECKING:
    from fedreuse.core.schema import TensorSpec

__all__ = ["NARROW", "Kind", "narrow_block"]

Kind = Literal["fp16", "bf16", "int8", "int4"]
_LEVELS = {"int8": 127, "int4": 7}
_BITS = {"int8": 8, "int4": 4}
_BLOCK = 1 << 15


def narrow_block(
    mask: np.ndarray | None, values: np.ndarray, size: int, kind: Kind, *, is_bitmap: bool = False
) -> Block:
    """Encode the kept coordinates of a tensor; the parcel's notes must contain `kind` as `values`.

    Args:
        mask: Flat positions of the values; None: all.
        values: The values.
        size: Number of coordinates of the tensor.
        kind: The format of the values.
        is_bitmap: The mask has one bit per coordinate instead.
    """
    form = _mask_form(size, len(values))
    if mask is None or form == "all":
        mask = np.empty(0, np.uint8)
    elif form == "pairs":
        mask = (positions_of(mask, size) if is_bitmap else mask).astype("<i4", copy=False)
    elif not is_bitmap:
        mask = bitmap_of(mask, size)
    return Block(NARROW, len(values), (mask, *_round(values, kind)))


def _mask_form(size: int, count: int) -> str:
    if count == size:
        return "all"
    return "bitmap" if -(-size // 8) <= 4 * count else "pairs"


def _round(values: np.ndarray, kind: str) -> tuple[np.ndarray, ...]:
    with np.errstate(over="ignore", invalid="ignore"):
        if kind == "fp16":
            return (values.astype("<f2"),)
        if kind == "bf16":
            return (_to_bf16(values),)
        scale = _scale(float(np.max(np.abs(values), initial=0.0)), _LEVELS[kind])
    if not 0 < scale < np.inf:
        return (np.array([scale], "<f4"),)
    return np.array([scale], "<f4"), pack_bits(_codes(values, scale, _LEVELS[kind]), _BITS[kind])


def _codes(values: np.ndarray, scale: float, top: int) -> np.ndarray:
    """Return the rounded levels from 1 to 2 top + 1, block by block, so that temporary arrays stay in the cache."""
    codes = np.empty(len(values), np.uint8)
    for start in range(0, len(values), _BLOCK):
        piece = values[start : start + _BLOCK].astype(np.float64)
        piece /= scale
        np.rint(piece, out=piece)
        np.clip(piece, -top, top, out=piece)
        piece += top + 1
        codes[start : start + _BLOCK] = piece
    return codes


def _scale(largest: float, top: int) -> float:
    """Return the step, rounded up to a float32, so that the largest magnitude does not exceed the top level."""
    with np.errstate(over="ignore"):
        rounded = np.float32(largest / top)
    is_below = float(rounded) < largest / top
    return float(np.nextafter(rounded, np.float32(np.inf)) if is_below else rounded)


def _to_bf16(values: np.ndarray) -> np.ndarray:
    bits = values.astype("<f4").view("<u4")
    rounded = (bits + (0x7FFF + (bits >> 16 & 1)).astype(np.uint32)) >> 16  # half a unit, less one bit if even
    not_a_number = (bits >> 16) | 0x40  # rounding could turn a NaN into an infinity
    return np.where((bits & 0x7FFFFFFF) > 0x7F800000, not_a_number, rounded).astype("<u2")


def _kind(notes: Notes, spec: TensorSpec) -> str:
    kind = notes.get("values") if isinstance(notes, dict) else None
    if kind not in ("fp16", "bf16", "int8", "int4"):
        raise WireError(f"{spec.name}: note values: fp16, bf16, int8 or int4 expected, got {kind!r}")
    return str(kind)


def _read(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    kind = _kind(notes, spec)
    check_float(spec, "narrow values")
    form = _mask_form(spec.size, count)
    mask = np.empty(0, np.uint8)
    if form != "all":
        mask = read_bitmap(take, spec, count) if form == "bitmap" else read_positions(take, spec, count)
    if kind in ("fp16", "bf16"):
        return mask, take(np.dtype("<f2" if kind == "fp16" else "<u2"), count)
    scale = take(np.dtype("<f4"), 1)
    if scale[0] < 0:
        raise WireError(f"{spec.name}: a scale must not be negative")
    if not 0 < scale[0] < np.inf:
        return mask, scale
    codes = take_bits(take, spec, _BITS[kind], count)
    if unpack_bits(codes, _BITS[kind], count).min(initial=1) < 1:  # levels are symmetric, so code 0 has none
        raise WireError(f"{spec.name}: a code below the lowest level")
    return mask, scale, codes


def _decode(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    kind = _kind(notes, spec)
    form = _mask_form(spec.size, block.count)
    mask, *fields = block.fields
    positions = None
    if form != "all":
        positions = positions_of(mask, spec.size) if form == "bitmap" else mask
    with np.errstate(over="ignore", invalid="ignore"):  # non-finite values stay so, and are refused later
        return positions, _widen(fields, kind, block.count, np.dtype(spec.dtype))


def _widen(fields: list[np.ndarray], kind: str, count: int, dtype: np.dtype[np.generic]) -> np.ndarray:
    if kind == "fp16":
        return fields[0].astype(dtype)
    if kind == "bf16":
        return (fields[0].astype("<u4") << 16).view("<f4").astype(dtype)
    scale = float(fields[0][0])
    if len(fields) == 1:
        return np.full(count, scale).astype(dtype)
    levels = np.arange(1 << _BITS[kind]) - (_LEVELS[kind] + 1)
    return (levels * scale).astype(dtype).take(unpack_bits(fields[1], _BITS[kind], count))


NARROW = add_mode(Mode(22, "narrow", _read, _decode, mask_fields=(0, 1)))
