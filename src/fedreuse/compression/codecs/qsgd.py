"""QSGD (Alistarh et al., 2017) with max-norm buckets: unbiased random rounding to a few levels.

top   = 2^(bits - 1) - 1                        levels -top .. top
s_B   = max |v_j| over the bucket B             one scale per bucket
x_j   = v_j / s_B * top
q_j   = floor(x_j), or one more with probability x_j - floor(x_j), so that E q_j = x_j
v_j' = s_B * q_j / top
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.wire.block import Block, dense_block, to_little_endian
from fedreuse.compression.wire.modes.levels import LEVELS, MAX_BUCKET, spread, top_level
from fedreuse.compression.wire.packing import pack_bits
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.errors import require
from fedreuse.core.tensors import to_dense

if TYPE_CHECKING:
    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors

__all__ = ["Qsgd"]


@codecs.register("qsgd")
@dataclass(frozen=True)
class Qsgd(Codec):
    """Unbiased random rounding to a few levels of the bucket's largest magnitude, bit-packed.

    Args:
        bits: Bits per coordinate including the sign, from 2 to 8. With 2 bits and buckets of 9 or larger the error can
            be larger than the tensor, so links with error feedback refuse the codec.
        bucket: Coordinates that share one scale (4 bytes), at least 1.

    Raises:
        ConfigError: If a value is out of range.

    Example: `uplink: {update: {name: qsgd, bits: 4}}`.
    """

    drops_coordinates: ClassVar[bool] = False

    bits: int = 4
    bucket: int = 512

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(2 <= self.bits <= 8, "qsgd.bits must be from 2 to 8", self.bits)
        require(1 <= self.bucket <= MAX_BUCKET, "qsgd.bucket must be at least 1", self.bucket)

    @property
    def expands(self) -> bool:
        """True if one outlier among 8 or more small coordinates can make the error as large as the tensor."""
        return self.bits == 2 and self.bucket > 8

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Return one block of scales and codes per tensor; integers are sent dense."""
        notes = {"bits": self.bits, "bucket": self.bucket}
        return pack_tensors(to_dense(tensors), schema, lambda flat: self._pack(flat, rng), notes)

    def _pack(self, flat: np.ndarray, rng: np.random.Generator) -> Block:
        if flat.dtype.kind != "f" or not len(flat):
            return dense_block(flat)
        top = top_level(self.bits)
        scales = np.maximum.reduceat(np.abs(flat), np.arange(0, len(flat), self.bucket))
        nonzero_scales = np.where(scales > 0, scales, 1)  # a bucket of zeros gives 0 / 1, not 0 / 0
        divisors = spread(nonzero_scales, self.bucket, len(flat))
        with np.errstate(invalid="ignore", over="ignore"):  # non-finite values make the scale non-finite
            exact = flat.astype(np.float64) / divisors * top
            below = np.floor(exact)
            levels = below + (rng.random(len(flat)) < exact - below)
        # any valid code: the non-finite scale makes the decoded values non-finite
        levels[~np.isfinite(spread(scales, self.bucket, len(flat)))] = 0
        return Block(LEVELS, len(flat), (to_little_endian(scales), pack_bits(levels + top, self.bits)))
