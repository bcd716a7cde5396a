"""EDEN (Vargaftik et al., 2022): random rotation, quantization for a normal distribution, unbiased scale.

y  = H D v                       D: random signs, H: Walsh-Hadamard; the coordinates of y / |v| are nearly normal
k  = the level nearest to y / |v|, coordinate by coordinate
v' = f D H k                     f = |v|^2 / <k, y>, so that <v', v> = |v|^2; `unbiased: false`: f = <k, y> / (d |k|^2)

Tensors are split into buckets of d coordinates, each with its own scale f.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.wire.block import Block, dense_block, to_little_endian
from fedreuse.compression.wire.hadamard import hadamard
from fedreuse.compression.wire.modes.rotated import (
    LEVELS_OF,
    MAX_BUCKET,
    ROTATED,
    UNIT,
    bucket_shape,
    levels_of,
    with_signs,
)
from fedreuse.compression.wire.packing import pack_bits
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.errors import require
from fedreuse.core.tensors import to_dense

if TYPE_CHECKING:
    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors

__all__ = ["Eden"]


@codecs.register("eden")
@dataclass(frozen=True)
class Eden(Codec):
    """Quantization of a randomly rotated tensor to levels of a normal distribution; the seed is sent.

    Args:
        bits: Bits per coordinate, from 1 to 4.
        unbiased: Scale so that the result is unbiased over rotations. Single errors can then be larger than the tensor,
            so links with error feedback refuse the codec. If false, the scale minimises the error, which is then never
            larger than the tensor.
        bucket: Coordinates that are rotated together and share one scale, a power of two from 8 to 65536; smaller
            tensors are padded to a power of two.

    Raises:
        ConfigError: If a value is out of range.

    Example: `uplink: {update: {name: eden, bits: 2}}`.
    """

    drops_coordinates: ClassVar[bool] = False

    bits: int = 2
    unbiased: bool = True
    bucket: int = 1024

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.bits in LEVELS_OF, f"eden.bits must be from 1 to {max(LEVELS_OF)}", self.bits)
        check_bucket(self.bucket, "eden")

    @property
    def expands(self) -> bool:
        """True for the unbiased scale: with one non-zero rotated coordinate of d, |v' - v|^2 = (d - 1) |v|^2."""
        return self.unbiased

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Return one block of seed, scales and codes per tensor; dense if that is smaller, and for integers."""
        notes = {"bits": self.bits, "bucket": self.bucket}
        return pack_tensors(to_dense(tensors), schema, lambda flat: self._pack(flat, rng), notes)

    def _pack(self, flat: np.ndarray, rng: np.random.Generator) -> Block:
        dense = dense_block(flat)
        if flat.dtype.kind != "f" or not len(flat):
            return dense
        seed = rng.integers(0, 2**64, dtype=np.uint64)
        length, num_buckets = bucket_shape(len(flat), self.bucket)
        signed = np.zeros((length, num_buckets), flat.dtype)  # buckets are columns, padded with zeros
        signed.reshape(-1)[: len(flat)] = with_signs(flat, seed)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):  # non-finite values give non-finite scales
            squares = np.sum(np.square(signed, dtype=np.float64), axis=0)
            rotated = hadamard(signed)
            codes = self._codes(rotated, np.sqrt(squares).astype(flat.dtype))
            scales = self._scales(rotated, levels_of(codes, self.bits), squares).astype(flat.dtype)
        packed = pack_bits(codes.reshape(-1), self.bits)
        block = Block(ROTATED, len(flat), (np.array([seed], "<u8"), to_little_endian(scales), packed))
        return block if block.field_bytes < dense.field_bytes else dense

    def _codes(self, rotated: np.ndarray, norms: np.ndarray) -> np.ndarray:
        """Return the index of the nearest magnitude, with the sign in the highest bit."""
        codes = (rotated < 0).astype(np.uint8)
        codes <<= self.bits - 1
        positive = np.array(LEVELS_OF[self.bits])
        for border in (positive[1:] + positive[:-1]) / (2 * UNIT):  # midpoints between neighbouring levels
            codes += np.abs(rotated) > norms * norms.dtype.type(border)
        return codes

    def _scales(self, rotated: np.ndarray, levels: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Return f of every bucket; 0 for a bucket of zeros."""
        along = np.sum(np.multiply(rotated, levels, dtype=np.float64), axis=0)
        if self.unbiased:
            return np.where(squares == 0, 0.0, squares / along)
        least: np.ndarray = along / (len(levels) * np.sum(np.square(levels, dtype=np.float64), axis=0))
        return least


def check_bucket(bucket: int, where: str) -> None:
    """Raise ConfigError unless the bucket is a power of two in the allowed range."""
    is_power = 8 <= bucket <= MAX_BUCKET and not bucket & (bucket - 1)
    require(is_power, f"{where}.bucket must be a power of two from 8 to {MAX_BUCKET}", bucket)
