"""One threshold for all tensors: a tensor whose numbers are larger keeps more of them.

theta  = the magnitude that `ratio` of all coordinates reach
k_T    = how many coordinates of tensor T reach it, at least 1
T'     = codec at k_T of them, if k_T / |T| is at least `sparse_below`; else the sparse codec

The same ratio in every tensor spends most bytes on the largest one, whose numbers are often the smallest. Of few
coordinates the positions cost most, and their magnitudes are alike: one magnitude is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.codecs.ratio import ratio_of, with_ratio
from fedreuse.compression.codecs.top_k import kept_count, largest, mark_largest
from fedreuse.compression.wire.block import Block, absent_block
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.errors import require
from fedreuse.core.registry import part
from fedreuse.core.schema import Schema
from fedreuse.core.tensors import Tensors, to_dense

__all__ = ["Allot"]

_REACH = 2
"""How many times more coordinates than were asked for are searched the next time."""


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
        return self.by_ratio(tensors, schema, rng)(self.ratio)

    def by_ratio(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Callable[[float], Parcel]:
        """The same at several ratios: the largest are looked for among the largest, and each tensor is written once."""
        search = _Search(self, to_dense(tensors), schema, rng)
        return search.at

    def suited(self, share: float) -> Codec:
        """The codec of a tensor that keeps such a share."""
        return with_ratio(self.sparse if share < self.sparse_below else self.codec, share)


class _Search:
    """The same tensors at one ratio after the other."""

    def __init__(self, codec: Allot, dense: Tensors, schema: Schema, rng: np.random.Generator) -> None:
        self._codec, self._values, self._schema, self._rng = codec, dense.values, schema, rng
        part = dense.schema
        self._starts = np.array(part.offsets[: len(part)], np.int64)
        self._each = [
            (
                Tensors(Schema((spec,)), self._values[start : start + spec.size]),
                Schema((schema.specs[schema.positions[spec.name]],)),
            )
            for spec, start in zip(part, self._starts.tolist(), strict=True)
        ]
        self._short, self._there = np.empty(0, np.int64), np.empty(0, dense.values.dtype)
        """Positions of the largest coordinates, more of them than any ratio so far asked for, and what is there."""
        self._written: dict[tuple[int, int], Parcel] = {}
        """Parcels by tensor and number of coordinates: one number, one choice."""

    def at(self, ratio: float) -> Parcel:
        kept = self._largest(kept_count(len(self._values), ratio))
        bounds = [*np.searchsorted(kept, self._starts).tolist(), len(kept)]
        blocks: dict[str, Block] = {}
        notes: dict[str, Any] = {}
        for number, (start, end) in enumerate(pairwise(bounds)):
            parcel = self._written.get((number, end - start))
            if parcel is None:
                parcel = self._write(number, kept[start:end] - self._starts[number])
            blocks[self._each[number][1].specs[0].name] = parcel.blocks[0]
            notes.update(parcel.notes)
        return Parcel(tuple(blocks.get(spec.name, absent_block()) for spec in self._schema), notes)

    def _largest(self, count: int) -> np.ndarray:
        """Positions of so many of the largest coordinates, increasing."""
        if count > len(self._short):
            more = min(len(self._values), _REACH * count)
            self._short = np.flatnonzero(mark_largest(self._values, more))
            self._there = self._values.take(self._short)
        return self._short.take(np.flatnonzero(mark_largest(self._there, count))) if count else self._short

    def _write(self, number: int, positions: np.ndarray) -> Parcel:
        (tensor, whole), key = self._each[number], (number, len(positions))
        flat = tensor.values
        if not len(positions) and len(flat):
            positions = largest(flat, 1)
        codec = self._codec.suited(len(positions) / len(flat) if len(flat) else 1.0)
        parcel = codec.encode_kept(tensor, whole, positions)
        if parcel is None:
            return codec.encode(tensor, whole, self._rng)
        self._written[key] = parcel
        return parcel
