"""Global top-k: one magnitude threshold for all tensors, so that tensors with larger values keep more coordinates.

theta  = the magnitude that a share `ratio` of all coordinates reaches
k_T    = number of coordinates of tensor T that reach it, at least 1
T'     = codec with k_T of them, if k_T / |T| is at least `sparse_below`; else the sparse codec

With the same ratio in every tensor, most bytes go to the largest tensor, whose values are often the smallest. If few
coordinates are kept, positions dominate the bytes and magnitudes are similar, so one common magnitude is enough.
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
"""Candidates found at once, as a multiple of the requested number, so that larger ratios need no new search."""


@codecs.register("allot")
@dataclass(frozen=True)
class Allot(Codec):
    """Top-k over all tensors together; another codec encodes the kept coordinates of each tensor.

    Args:
        ratio: Share of all coordinates that is kept, in (0, 1]; at least one of each tensor.
        codec: Codec of a tensor that keeps a share of at least `sparse_below`; must have a ratio (`top_k`, `ternary`,
            optionally inside `narrow`), which is set from the threshold.
        sparse: Codec of the other tensors, with the same requirement.
        sparse_below: Share of a tensor's coordinates, in [0, 1]; 0 uses `codec` for all tensors.

    Raises:
        ConfigError: If a value is out of range, or a codec has no ratio.

    Example: `uplink: {update: {name: error_feedback, codec: {name: allot, ratio: 0.05}}}`.
    """

    drops_coordinates: ClassVar[bool] = True

    ratio: float = 0.05
    codec: Codec = part(codecs, {"name": "narrow", "values": "int4", "codec": "top_k"})
    sparse: Codec = part(codecs, "ternary")
    sparse_below: float = 0.05

    def __post_init__(self) -> None:
        """Check the ranges and that both codecs have a ratio."""
        require(0 < self.ratio <= 1, "allot.ratio must be in (0, 1]", self.ratio)
        require(0 <= self.sparse_below <= 1, "allot.sparse_below must be in [0, 1]", self.sparse_below)
        for name, codec in (("codec", self.codec), ("sparse", self.sparse)):
            require(
                ratio_of(codec) is not None and not isinstance(codec, Allot),
                f"allot.{name} must have a ratio: top_k or ternary, optionally inside narrow",
                codecs.name_of(codec),
            )

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Return one block per tensor, by the codec for the share that the tensor keeps."""
        return self.by_ratio(tensors, schema, rng)(self.ratio)

    def by_ratio(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Callable[[float], Parcel]:
        """Return a function that encodes the same tensors at any ratio; it reuses earlier searches and blocks."""
        search = _Search(self, to_dense(tensors), schema, rng)
        return search.at

    def suited(self, share: float) -> Codec:
        """Return the codec for a tensor that keeps this share, with its ratio set."""
        return with_ratio(self.sparse if share < self.sparse_below else self.codec, share)


class _Search:
    """Encoding of the same tensors at several ratios, with caches."""

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
        self._candidates, self._candidate_values = np.empty(0, np.int64), np.empty(0, dense.values.dtype)
        """Positions of the largest coordinates, at least as many as any ratio so far needed, and their values."""
        self._written: dict[tuple[int, int], Parcel] = {}
        """Parcels by tensor and number of kept coordinates, which determines the positions."""

    def at(self, ratio: float) -> Parcel:
        kept = self._largest(kept_count(len(self._values), ratio))
        # positions are sorted, so those of each tensor are consecutive
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
        """Return the increasing positions of the `count` largest coordinates."""
        if count > len(self._candidates):
            more = min(len(self._values), _REACH * count)
            self._candidates = largest(self._values, more)
            self._candidate_values = self._values.take(self._candidates)
        if not count:
            return self._candidates
        return self._candidates.take(np.flatnonzero(mark_largest(self._candidate_values, count)))

    def _write(self, number: int, positions: np.ndarray) -> Parcel:
        (tensor, whole), key = self._each[number], (number, len(positions))
        flat = tensor.values
        if not len(positions) and len(flat):  # every tensor keeps at least one
            positions = largest(flat, 1)
        codec = self._codec.suited(len(positions) / len(flat) if len(flat) else 1.0)
        parcel = codec.encode_kept(tensor, whole, positions)
        if parcel is None:
            return codec.encode(tensor, whole, self._rng)  # not cached: a random codec draws anew each time
        self._written[key] = parcel
        return parcel
