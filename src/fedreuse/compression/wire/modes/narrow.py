"""Kept coordinates whose values are rounded to fewer bits; where they are is written as in the other sparse modes.

The parcel's note `values` says how, and with it the fields:

    fp16   IEEE half precision, to nearest even; what is too large for it becomes infinite, and is refused on arrival
    bf16   the upper half of a float32, to nearest even
    int8   scale R = max |v| / 127 (32-bit float, rounded up), then q = rint(v / R), 8 bits with sign
    int4   scale R = max |v| / 7, then q + 8, 4 bits each

Before them: nothing if all d coordinates are carried, a bitmap of ceil(d / 8) bytes if that is not longer than 4 k
bytes, otherwise k positions of 32 bits. Where the largest magnitude is 0 or no finite number, int8 and int4 are the
scale alone.
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


def narrow_block(
    positions: np.ndarray | None, values: np.ndarray, size: int, kind: Kind, bitmap: np.ndarray | None = None
) -> Block:
    """The kept coordinates (None: all) of a tensor of `size`, rounded; the parcel's notes must say `values`.

    `bitmap` is a bit per coordinate, where that is at hand: the positions once more.
    """
    place = _place(size, len(values))
    where = np.empty(0, np.uint8)
    if positions is not None and place != "all":
        if place == "pairs":
            where = positions.astype("<i4")
        else:
            where = bitmap_of(positions, size) if bitmap is None else bitmap
    return Block(NARROW, len(values), (where, *_round(values, kind)))


def _place(size: int, count: int) -> str:
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
    top = _LEVELS[kind]
    levels = np.clip(np.rint(values.astype(np.float64) / scale), -top, top).astype(np.int64)
    return np.array([scale], "<f4"), pack_bits((levels + top + 1).astype(np.uint32), _BITS[kind])


def _scale(largest: float, top: int) -> float:
    """The step, as the next float32 above it, so that the largest magnitude is a level."""
    with np.errstate(over="ignore"):
        rounded = np.float32(largest / top)
    is_below = float(rounded) < largest / top
    return float(np.nextafter(rounded, np.float32(np.inf)) if is_below else rounded)


def _to_bf16(values: np.ndarray) -> np.ndarray:
    bits = values.astype("<f4").view("<u4")
    rounded = (bits + (0x7FFF + (bits >> 16 & 1)).astype(np.uint32)) >> 16
    not_a_number = (bits >> 16) | 0x40  # rounding could carry a NaN over into an infinity
    return np.where((bits & 0x7FFFFFFF) > 0x7F800000, not_a_number, rounded).astype("<u2")


def _kind(notes: Notes, spec: TensorSpec) -> str:
    kind = notes.get("values") if isinstance(notes, dict) else None
    if kind not in ("fp16", "bf16", "int8", "int4"):
        raise WireError(f"{spec.name}: note values: fp16, bf16, int8 or int4 expected, got {kind!r}")
    return str(kind)


def _read(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    kind = _kind(notes, spec)
    check_float(spec, "narrow values")
    place = _place(spec.size, count)
    where = np.empty(0, np.uint8)
    if place != "all":
        where = read_bitmap(take, spec, count) if place == "bitmap" else read_positions(take, spec, count)
    if kind in ("fp16", "bf16"):
        return where, take(np.dtype("<f2" if kind == "fp16" else "<u2"), count)
    scale = take(np.dtype("<f4"), 1)
    if scale[0] < 0:
        raise WireError(f"{spec.name}: a scale is a magnitude, and not negative")
    if not 0 < scale[0] < np.inf:
        return where, scale
    codes = take_bits(take, spec, _BITS[kind], count)
    if unpack_bits(codes, _BITS[kind], count).min(initial=1) < 1:
        raise WireError(f"{spec.name}: a code below the lowest level")
    return where, scale, codes


def _decode(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    kind = _kind(notes, spec)
    place = _place(spec.size, block.count)
    where, *fields = block.fields
    positions = None
    if place != "all":
        positions = positions_of(where, spec.size) if place == "bitmap" else where
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite arrives so, and is refused
        return positions, _widen(fields, kind, block.count).astype(spec.dtype)


def _widen(fields: list[np.ndarray], kind: str, count: int) -> np.ndarray:
    if kind == "fp16":
        return fields[0]
    if kind == "bf16":
        return (fields[0].astype("<u4") << 16).view("<f4")
    scale = float(fields[0][0])
    if len(fields) == 1:
        return np.full(count, scale)
    levels = unpack_bits(fields[1], _BITS[kind], count).astype(np.int64) - (_LEVELS[kind] + 1)
    return levels * scale


NARROW = add_mode(Mode(22, "narrow", _read, _decode, mask_fields=(0, 1)))
