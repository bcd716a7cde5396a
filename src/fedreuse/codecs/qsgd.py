"""QSGD (Alistarh et al., 2017) with max-norm buckets: random rounding to a few levels, right on average.

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

from fedreuse.codecs.codec import Codec, codecs
from fedreuse.core.errors import WireError, require
from fedreuse.core.tensors import to_dense
from fedreuse.wire.block import Block, Mode, Notes, Take, add_mode, dense_block, to_little_endian, value_dtype
from fedreuse.wire.packing import check_float, pack_bits, take_bits, unpack_bits, whole_note
from fedreuse.wire.parcel import Parcel, pack_tensors

if TYPE_CHECKING:
    from fedreuse.core.schema import Schema, TensorSpec
    from fedreuse.core.tensors import Tensors

__all__ = ["LEVELS", "Qsgd"]

_MAX_BUCKET = 2**31 - 1


@codecs.register("qsgd")
@dataclass(frozen=True)
class Qsgd(Codec):
    """Round each coordinate at random to a few levels of its bucket's largest magnitude: unbiased, bit-packed."""

    drops_coordinates: ClassVar[bool] = False

    bits: int = 4
    bucket: int = 512

    def __post_init__(self) -> None:
        """One bit is the sign's."""
        require(2 <= self.bits <= 8, "qsgd.bits must be from 2 to 8", self.bits)
        require(1 <= self.bucket <= _MAX_BUCKET, "qsgd.bucket must be at least 1", self.bucket)

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """One block of scales and codes per tensor; whole numbers travel dense."""
        notes = {"bits": self.bits, "bucket": self.bucket}
        return pack_tensors(to_dense(tensors), schema, lambda flat: self._pack(flat, rng), notes)

    def _pack(self, flat: np.ndarray, rng: np.random.Generator) -> Block:
        if flat.dtype.kind != "f" or not len(flat):
            return dense_block(flat)
        top = _top(self.bits)
        scales = np.maximum.reduceat(np.abs(flat), np.arange(0, len(flat), self.bucket))
        divisors = _spread(
            np.where(scales > 0, scales, 1), self.bucket, len(flat)
        )  # a bucket of zeros: 0 / 1, not 0 / 0
        with np.errstate(invalid="ignore", over="ignore"):  # what is not finite: the scale will say it
            exact = flat.astype(np.float64) / divisors * top
            below = np.floor(exact)
            levels = below + (rng.random(len(flat)) < exact - below)
        levels[~np.isfinite(_spread(scales, self.bucket, len(flat)))] = 0
        return Block(LEVELS, len(flat), (to_little_endian(scales), pack_bits(levels + top, self.bits)))


def _read_levels(take: Take, spec: TensorSpec, count: int, notes: Notes) -> tuple[np.ndarray, ...]:
    del count
    check_float(spec, "levels")
    bits, bucket = whole_note(notes, "bits", 2, 8), whole_note(notes, "bucket", 1, _MAX_BUCKET)
    scales = take(value_dtype(spec), -(-spec.size // bucket))
    if (scales < 0).any():
        raise WireError(f"{spec.name}: a scale is a magnitude, and not negative")
    codes = take_bits(take, spec, bits, spec.size)
    if unpack_bits(codes, bits, spec.size).max(initial=0) > 2 * _top(bits):
        raise WireError(f"{spec.name}: a code above {2 * _top(bits)}, the top level")
    return scales, codes


def _decode_levels(block: Block, spec: TensorSpec, notes: Notes) -> tuple[np.ndarray | None, np.ndarray]:
    scales, codes = block.fields
    top = _top(notes["bits"])
    parts = (np.arange(-top, top + 1) / top).astype(spec.dtype)
    levels = parts[unpack_bits(codes, notes["bits"], spec.size)]
    with np.errstate(invalid="ignore"):
        return None, levels * _spread(scales, notes["bucket"], spec.size)


LEVELS = add_mode(Mode(16, "levels", _read_levels, _decode_levels, has_count=False))


def _top(bits: int) -> int:
    """The top level: 2 top + 1 codes fit into `bits` bits."""
    return int(2 ** (bits - 1) - 1)


def _spread(scales: np.ndarray, bucket: int, size: int) -> np.ndarray:
    """Each bucket's scale for each of its coordinates."""
    return np.repeat(scales, min(bucket, size))[:size]
