"""All coordinates at full precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.tensors import to_dense

if TYPE_CHECKING:
    import numpy as np

    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors

__all__ = ["Dense"]


@codecs.register("dense")
@dataclass(frozen=True)
class Dense(Codec):
    """All coordinates at full precision: lossless, the reference of all savings.

    Example: `uplink: {update: dense}`.
    """

    drops_coordinates: ClassVar[bool] = False
    is_exact: ClassVar[bool] = True

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Return one dense block per tensor."""
        del rng
        return pack_tensors(to_dense(tensors), schema)
