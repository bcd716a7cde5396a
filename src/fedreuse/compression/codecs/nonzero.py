"""Non-zero coordinates: lossless compression of sparse tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.wire.block import Block, sparse_block
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.tensors import to_dense

if TYPE_CHECKING:
    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors

__all__ = ["Nonzero"]


@codecs.register("nonzero")
@dataclass(frozen=True)
class Nonzero(Codec):
    """The non-zero coordinates in the smallest of dense, bitmap and index pairs: lossless.

    Example: `downlink: {model: {name: delta, codec: nonzero}}`.
    """

    drops_coordinates: ClassVar[bool] = False
    is_exact: ClassVar[bool] = True

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Return one block per tensor."""
        del rng
        return pack_tensors(to_dense(tensors), schema, _pack)


def _pack(flat: np.ndarray) -> Block:
    # compared as bits, so that a negative zero is kept: the codec must be lossless to the bit
    positions = np.flatnonzero(flat.view(f"u{flat.dtype.itemsize}")).astype(np.int32)
    return sparse_block(positions, flat[positions], len(flat))
