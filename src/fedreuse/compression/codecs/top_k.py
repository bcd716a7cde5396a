"""Top-k sparsification of each tensor by magnitude."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, sqrt
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.wire.block import Block, dense_block, sparse_block
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.errors import require
from fedreuse.core.tensors import to_dense

if TYPE_CHECKING:
    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors

__all__ = ["TopK", "kept_count", "largest", "mark_largest"]

_FEW = 16
"""A sample of the magnitudes is worth taking if fewer than one coordinate in 16 is kept."""
_SAMPLE = 1 << 15
"""Number of magnitudes in the sample."""
_BLOCK = 1 << 16
"""Coordinates that are compared at once, so that temporary arrays stay in the processor's cache."""


@codecs.register("top_k")
@dataclass(frozen=True)
class TopK(Codec):
    """The largest coordinates of each tensor by magnitude, in the smallest of dense, bitmap and index pairs.

    Args:
        ratio: Share of the coordinates that is kept, in (0, 1]; at least one of each tensor.

    Raises:
        ConfigError: If `ratio` is out of range.

    Example: `uplink: {update: {name: top_k, ratio: 0.1}}`.
    """

    drops_coordinates: ClassVar[bool] = True

    ratio: float = 0.2

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(0 < self.ratio <= 1, "top_k.ratio must be in (0, 1]", self.ratio)

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Return one block per tensor with k = min(d, max(1, floor(ratio * d))) kept coordinates."""
        del rng
        return pack_tensors(to_dense(tensors), schema, self._pack)

    def encode_kept(self, tensors: Tensors, schema: Schema, positions: np.ndarray) -> Parcel:
        """Encode given positions."""
        return pack_tensors(tensors, schema, lambda flat: _write(flat, positions))

    def _pack(self, flat: np.ndarray) -> Block:
        count = kept_count(len(flat), self.ratio)
        if count == len(flat):
            return dense_block(flat)
        if _is_few(len(flat), count):
            return _write(flat, largest(flat, count))
        marks = mark_largest(flat, count)
        return _write(flat, np.flatnonzero(marks), marks)


def _write(flat: np.ndarray, positions: np.ndarray, marks: np.ndarray | None = None) -> Block:
    if len(positions) == len(flat):
        return dense_block(flat)
    return sparse_block(positions, flat.take(positions), len(flat), marks)


def kept_count(size: int, ratio: float) -> int:
    """Return k = max(1, floor(ratio * size)); the small term guards floor(0.2 * 5) against rounding errors."""
    return min(size, max(1, floor(ratio * size + 1e-9)))


def largest(flat: np.ndarray, count: int) -> np.ndarray:
    """Return the increasing positions of the `count` largest magnitudes; ties go to the smaller position."""
    candidates = _candidates(flat, count) if _is_few(len(flat), count) else None
    if candidates is None:
        return np.flatnonzero(mark_largest(flat, count))
    return candidates.take(np.flatnonzero(mark_largest(flat.take(candidates), count)))


def mark_largest(flat: np.ndarray, count: int) -> np.ndarray:
    """Return a flag per coordinate that marks the `count` largest magnitudes; ties go to the smaller position."""
    magnitudes = np.abs(flat)
    threshold = np.partition(magnitudes, len(flat) - count)[len(flat) - count]
    # the negation also keeps NaN, so that the receiver refuses the message
    kept: np.ndarray = ~(magnitudes <= threshold)
    missing = count - int(np.count_nonzero(kept))
    if missing > 0:
        kept[np.flatnonzero(magnitudes == threshold)[:missing]] = True
    return kept


def _is_few(size: int, count: int) -> bool:
    return size >= 2 * _SAMPLE and 0 < count * _FEW < size


def _candidates(flat: np.ndarray, count: int) -> np.ndarray | None:
    """Return increasing positions that contain the `count` largest magnitudes; None if a sample did not find them.

    Every magnitude that reaches a lower bound is a candidate. Whatever the bound, the largest are among them if they
    are enough, so the sample decides the speed and never the result.
    """
    sample = np.abs(flat[:: (len(flat) // _SAMPLE) | 1])  # an odd stride: rows of a matrix often have an even length
    expected = count / len(flat) * len(sample)
    rank = int(expected + 4 * sqrt(expected) + 8)
    bound = np.partition(sample, len(sample) - rank)[len(sample) - rank]
    if not bound > 0:  # also for NaN
        return None
    found = []
    magnitudes = np.empty(_BLOCK, flat.dtype)
    for start in range(0, len(flat), _BLOCK):
        piece = flat[start : start + _BLOCK]
        reached = np.flatnonzero(~(np.abs(piece, out=magnitudes[: len(piece)]) < bound))  # the negation keeps NaN
        found.append(reached + start)
    candidates = np.concatenate(found)
    has_undefined = bool(np.isnan(flat.take(candidates)).any())
    return None if len(candidates) < count or has_undefined else candidates
