"""Natural compression (Horvath et al., 2019): unbiased random rounding to a power of two.

2^a <= |v| < 2^(a+1):   |v'| = 2^(a+1) with probability |v| / 2^a - 1, else 2^a

The fraction of a float32 is that probability. So adding a random fraction to the bit pattern and truncating it to the
exponent rounds correctly, without a logarithm. Below the smallest normal number the two neighbours are 0 and 2^-126.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.wire.block import Block, dense_block
from fedreuse.compression.wire.modes.powers import FRACTION_BITS, POWERS
from fedreuse.compression.wire.packing import pack_bits
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.tensors import to_dense

if TYPE_CHECKING:
    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors

__all__ = ["Natural"]

_LARGEST, _NOT_FINITE = 254, 255


@codecs.register("natural")
@dataclass(frozen=True)
class Natural(Codec):
    """Unbiased random rounding to a power of two: a sign bit and an exponent byte per coordinate.

    Example: `uplink: {update: natural}`.
    """

    drops_coordinates: ClassVar[bool] = False

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Return one block of signs and exponents per tensor; integers are sent dense."""
        return pack_tensors(to_dense(tensors), schema, lambda flat: _pack(flat, rng))


def _pack(flat: np.ndarray, rng: np.random.Generator) -> Block:
    if flat.dtype.kind != "f":
        return dense_block(flat)
    with np.errstate(over="ignore", invalid="ignore"):
        single = flat.astype(np.float32)
    bits = single.view(np.uint32)
    fractions = rng.integers(0, 1 << FRACTION_BITS, len(flat), dtype=np.uint32)
    exponents = ((bits & 0x7FFFFFFF) + fractions) >> FRACTION_BITS
    # the largest finite exponent must not round up to infinity; non-finite values keep theirs
    exponents = np.where(np.isfinite(single), np.minimum(exponents, _LARGEST), _NOT_FINITE)
    return Block(POWERS, len(flat), (pack_bits(bits >> 31, 1), exponents.astype(np.uint8)))
