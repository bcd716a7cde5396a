"""Sparse ternary compression (Sattler et al., 2020): the largest coordinates, all with the same magnitude.

keep  = the top `ratio` of each tensor by magnitude, without zeros
mu    = mean |v_j| over the kept coordinates
v_j' = mu * sign(v_j) where kept, 0 elsewhere

A tensor is sent as mu, one sign bit per kept coordinate, and the positions in Rice codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.codecs.top_k import kept_count, largest
from fedreuse.compression.wire.block import Block, dense_block, to_little_endian
from fedreuse.compression.wire.modes.ternary import TERNARY
from fedreuse.compression.wire.packing import pack_bits
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.compression.wire.rice import rice_encode
from fedreuse.core.errors import require
from fedreuse.core.tensors import to_dense

if TYPE_CHECKING:
    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors

__all__ = ["Ternary"]


@codecs.register("ternary")
@dataclass(frozen=True)
class Ternary(Codec):
    """The largest coordinates of each tensor, with their mean magnitude: signs and Rice-coded positions.

    Args:
        ratio: Share of the coordinates that is kept, in (0, 1].

    Raises:
        ConfigError: If `ratio` is out of range.

    Example: `uplink: {update: {name: error_feedback, codec: {name: ternary, ratio: 0.05}}}`.
    """

    drops_coordinates: ClassVar[bool] = True

    ratio: float = 0.2

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 < self.ratio <= 1, "ternary.ratio must be in (0, 1]", self.ratio)

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator | None = None) -> Parcel:
        """Return one block per tensor; integers are sent dense. No random numbers are drawn."""
        del rng
        return pack_tensors(to_dense(tensors), schema, self._pack)

    def encode_kept(self, tensors: Tensors, schema: Schema, positions: np.ndarray) -> Parcel:
        """Encode given positions."""
        return pack_tensors(tensors, schema, lambda flat: self._pack(flat, positions.astype(np.int32)))

    def _pack(self, flat: np.ndarray, positions: np.ndarray | None = None) -> Block:
        if flat.dtype.kind != "f" or not len(flat):
            return dense_block(flat)
        if positions is None:
            positions = largest(flat, kept_count(len(flat), self.ratio))
        positions = positions[flat[positions] != 0]  # a zero has no sign, and must not become mu
        if not len(positions):
            return Block(TERNARY, 0, ())
        kept = flat[positions]
        unary, low = rice_encode(positions, len(flat))
        with np.errstate(invalid="ignore", over="ignore"):  # non-finite values are sent, and the receiver refuses them
            magnitude = np.array([np.abs(kept).mean(dtype=np.float64)]).astype(flat.dtype)
        fields = (
            to_little_endian(magnitude),
            np.array([len(unary)], "<u4"),
            unary,
            low,
            pack_bits(np.signbit(kept), 1),
        )
        return Block(TERNARY, len(positions), fields)
