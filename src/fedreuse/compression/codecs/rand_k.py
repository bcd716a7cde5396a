"""Rand-K: random coordinates of each tensor, drawn anew for every message; the seed of the positions is sent.

keep  = k of d positions, uniformly, without replacement     k = min(d, max(1, floor(ratio * d)))
v_j' = d / k * v_j where kept, 0 elsewhere                   unbiased; with `unbiased: false` without d / k
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.codecs.top_k import kept_count
from fedreuse.compression.wire.block import (
    Block,
    dense_block,
    sparse_block,
    to_little_endian,
)
from fedreuse.compression.wire.modes.seeded import SEEDED, drawn_positions
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.errors import require
from fedreuse.core.tensors import to_dense

if TYPE_CHECKING:
    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors

__all__ = ["RandK"]


@codecs.register("rand_k")
@dataclass(frozen=True)
class RandK(Codec):
    """Random coordinates of each tensor, scaled to be unbiased; the seed of the positions is sent.

    Args:
        ratio: Share of the coordinates that is kept, in (0, 1].
        unbiased: Multiply the kept coordinates by d / k, so that the result is unbiased. If false, the codec is
            contractive, as links with error feedback require.

    Raises:
        ConfigError: If `ratio` is out of range.

    Example: `uplink: {update: {name: rand_k, ratio: 0.1}}`.
    """

    drops_coordinates: ClassVar[bool] = True

    ratio: float = 0.2
    unbiased: bool = True

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 < self.ratio <= 1, "rand_k.ratio must be in (0, 1]", self.ratio)

    @property
    def expands(self) -> bool:
        """True if scaled: E|v' - v|^2 = (d / k - 1) |v|^2."""
        return self.unbiased and self.ratio < 1

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Return one block per tensor, with the seed unless the positions themselves are shorter."""
        return pack_tensors(to_dense(tensors), schema, lambda flat: self._pack(flat, rng))

    def _pack(self, flat: np.ndarray, rng: np.random.Generator) -> Block:
        count = kept_count(len(flat), self.ratio)
        seed = rng.integers(0, 2**64, dtype=np.uint64)  # for every tensor: later draws must not depend on the values
        if count >= len(flat) or flat.dtype.kind != "f" or not np.isfinite(flat).all():
            return dense_block(flat)  # non-finite values are sent, so that the receiver refuses them
        positions = drawn_positions(seed, len(flat), count)
        values = flat[positions]
        if self.unbiased:
            with np.errstate(over="ignore"):  # values that become infinite are sent, and the receiver refuses them
                values = values * flat.dtype.type(len(flat) / count)
        seeded = Block(SEEDED, count, (np.array([seed], "<u8"), to_little_endian(values)))
        return min(seeded, sparse_block(positions, values, len(flat)), key=lambda block: block.field_bytes)
