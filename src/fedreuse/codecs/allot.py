"""One threshold for all tensors: a tensor whose numbers are larger keeps more of them.

theta  = the magnitude that `ratio` of all coordinates reach
k_T    = how many coordinates of tensor T reach it, at least 1
T'     = codec at k_T of them, if k_T / |T| is at least `sparse_below`; else the sparse codec

The same ratio in every tensor spends most bytes on the largest one, whose numbers are often the smallest. Of few
coordinates the positions cost most, and their magnitudes are alike: one magnitude is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedreuse.codecs.codec import Codec, codecs
from fedreuse.codecs.ratio import ratio_of, with_ratio
from fedreuse.codecs.top_k import kept_count, mark_largest
from fedreuse.core.errors import require
from fedreuse.core.registry import part
from fedreuse.core.schema import Schema
from fedreuse.core.tensors import Tensors, to_dense
from fedreuse.wire.block import Block, absent_block
from fedreuse.wire.parcel import Parcel

__all__ = ["Allot"]


@codecs.register("allot")
@dataclass(frozen=True)
class Allot(Codec):
    """Keep the largest coordinates of all tensors together; another codec writes those of each tensor.

    Args:
        ratio: Share of all coordinates that is kept, in (0, 1]; at least one of each tensor.
        codec: Writes a tensor's; it must have a ratio (`top_k`, `ternary`, perhaps inside `narrow`), which follows
            from the threshold.
        sparse: Writes those of a tensor that keeps few.
        sparse_below: What few is: a share of the tensor's coordinates, in [0, 1]; 0 leaves all to `codec`.

    Example: `uplink: {update: {name: error_feedback, codec: {name: allot, ratio: 0.05}}}`.
    """

    drops_coordinates: ClassVar[bool] = True

    ratio: float = 0.05
    codec: Codec = part(codecs, {"name": "narrow", "values": "int4", "codec": "top_k"})
    sparse: Codec = part(codecs, "ternary")
    sparse_below: float = 0.05

    def __post_init__(self) -> None:
        """Check the ranges, and that there are ratios to set."""
        require(0 < self.ratio <= 1, "allot.ratio must be in (0, 1]", self.ratio)
        require(0 <= self.sparse_below <= 1, "allot.sparse_below must be in [0, 1]", self.sparse_below)
        for name, codec in (("codec", self.codec), ("sparse", self.sparse)):
            require(
                ratio_of(codec) is not None and not isinstance(codec, Allot),
                f"allot.{name} must have a ratio: top_k or ternary, perhaps inside narrow",
                codecs.name_of(codec),
            )

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """One block per tensor, by the codec that suits what the tensor keeps."""
        dense = to_dense(tensors)
        size = len(dense.values)
        marks = mark_largest(dense.values, kept_count(size, self.ratio)) if size else np.zeros(0, bool)
        blocks: dict[str, Block] = {}
        notes: dict[str, Any] = {}
        for spec, start in zip(dense.schema, dense.schema.offsets, strict=False):
            inside = slice(start, start + spec.size)
            share = max(1, int(marks[inside].sum())) / max(1, spec.size)
            whole = Schema((schema.specs[schema.positions[spec.name]],))
            parcel = self._suited(share).encode(Tensors(Schema((spec,)), dense.values[inside]), whole, rng)
            blocks[spec.name] = parcel.blocks[0]
            notes.update(parcel.notes)
        return Parcel(tuple(blocks.get(spec.name, absent_block()) for spec in schema), notes)

    def _suited(self, share: float) -> Codec:
        return with_ratio(self.sparse if share < self.sparse_below else self.codec, share)
