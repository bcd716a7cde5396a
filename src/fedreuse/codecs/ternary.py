"""Sparse ternary compression (Sattler et al., 2020): the largest coordinates, all with one magnitude.

keep  = the top `ratio` of each tensor by magnitude, zeros excepted
mu    = mean |v_j| over the kept
v_j' = mu * sign(v_j) where kept, 0 elsewhere

A tensor travels as mu, one sign bit per kept coordinate, and the positions in Rice codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.codecs.codec import Codec, codecs
from fedreuse.codecs.rice import rice_decode, rice_encode, rice_width
from fedreuse.codecs.top_k import kept_count, largest
from fedreuse.core.errors import WireError, require
from fedreuse.core.tensors import to_dense
from fedreuse.wire.block import Block, Mode, Notes, Take, add_mode, dense_block, to_little_endian, value_dtype
from fedreuse.wire.packing import check_float, pack_bits, take_bits, unpack_bits
from fedreuse.wire.parcel import Parcel, pack_tensors

if TYPE_CHECKING:
    from fedreuse.core.schema import Schema, TensorSpec
    from fedreuse.core.tensors import Tensors

__all__ = ["TERNARY", "Ternary"]


@codecs.register("ternary")
@dataclass(frozen=True)
class Ternary(Codec):
    """Keep the largest coordinates of each tensor, all with their mean magnitude: signs and Rice-coded positions."""

    drops_coordinates: ClassVar[bool] = True

    ratio: float = 0.2

    def __post_init__(self) -> None:
        """A ratio keeps something."""
        require(0 < self.ratio <= 1, "ternary.ratio must be in (0, 1]", self.ratio)

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator | None = None) -> Parcel:
        """One block per tensor; whole numbers travel dense. Nothing is drawn."""
        del rng
        return pack_tensors(to_dense(tensors), schema, self._pack)

    def _pack(self, flat: np.ndarray) -> Block:
        if flat.dtype.kind != "f" or not len(flat):
            return dense_block(flat)
        positions = largest(flat, kept_count(len(flat), self.ratio))
        positions = positions[flat[positions] != 0]  # a zero has no sign, and must not become mu
        if not len(positions):
            return Block(TERNARY, 0, ())
        kept = flat[positions]
        unary, low = rice_encode(positions, len(flat))
        with np.errstate(invalid="ignore", over="ignore"):  # what is not finite travels, and the receiver refuses it
            magnitude = np.array([np.abs(kept).mean(dtype=np.float64)]).astype(flat.dtype)
        fields = (
            to_little_endian(magnitude),
            np.array([len(unary)], "<u4"),
            unary,
            low,
            pack_bits(np.signbit(kept), 1),
        )
        return Block(TERNARY, len(positions), fields)


def _read_ternary(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    del notes
    check_float(spec, "ternary")
    if not count:
        return ()
    magnitude = take(value_dtype(spec), 1)
    if magnitude[0] < 0:
        raise WireError(f"{spec.name}: a magnitude is not negative")
    length = take(np.dtype("<u4"), 1)
    width = rice_width(count, spec.size)
    longest = -(-(count + (spec.size >> width)) // 8)  # a one per code, a zero per 2^width positions
    if int(length[0]) > longest:
        raise WireError(f"{spec.name}: a unary part of {length[0]} bytes, where {longest} reach the last position")
    unary = take(np.dtype("u1"), int(length[0]))
    num_marked = int(np.bitwise_count(unary).sum())
    if num_marked != count or not unary[-1]:
        raise WireError(f"{spec.name}: {num_marked} codes in {len(unary)} bytes, the message says {count}")
    low = take_bits(take, spec, width, count)
    if rice_decode(unary, low, count, spec.size)[-1] >= spec.size:
        raise WireError(f"{spec.name}: positions must lie within 0..{spec.size - 1}")
    return magnitude, length, unary, low, take_bits(take, spec, 1, count)


def _decode_ternary(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    del notes
    if not block.count:
        return np.empty(0, np.int32), np.empty(0, spec.dtype)
    magnitude, _, unary, low, signs = block.fields
    positions = rice_decode(unary, low, block.count, spec.size).astype(np.int32)
    return positions, np.where(unpack_bits(signs, 1, block.count), -magnitude, magnitude)


TERNARY = add_mode(Mode(17, "ternary", _read_ternary, _decode_ternary))
