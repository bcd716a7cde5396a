"""ECUQ, the quantiser of DoCoFL (Dorfman et al., 2023): the finest uniform grid within an entropy budget.

step = (max - min) / L
i_j  = floor((v_j - min) / step), at most L - 1
v_j' = min + (i_j + 1/2) step
L    = number of levels for which the empirical entropy of the indices is in [bits - tolerance, bits]; found by
       doubling, then bisection

The indices are sent as canonical Huffman codes, together with the code lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.wire.block import Block, dense_block, to_little_endian
from fedreuse.compression.wire.huffman import code_lengths, huffman_encode
from fedreuse.compression.wire.modes.grid import GRID, LENGTH_BITS, MAX_LEVELS
from fedreuse.compression.wire.packing import pack_bits
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.errors import require
from fedreuse.core.tensors import to_dense

if TYPE_CHECKING:
    from fedreuse.core.schema import Schema
    from fedreuse.core.tensors import Tensors

__all__ = ["Ecuq", "entropy"]


@codecs.register("ecuq")
@dataclass(frozen=True)
class Ecuq(Codec):
    """Entropy-constrained uniform quantization: a uniform grid with Huffman-coded indices.

    Args:
        bits: Largest entropy of the indices in bits per coordinate, from 1 to 8. Up to 1 + `tolerance` the error can be
            larger than the tensor, so links with error feedback refuse the codec.
        tolerance: Accepted distance of the entropy below `bits`, in bits, in (0, 1]; smaller values search longer for
            the finest grid.

    Raises:
        ConfigError: If a value is out of range.

    Example: `uplink: {update: {name: ecuq, bits: 3}}`.
    """

    drops_coordinates: ClassVar[bool] = False

    bits: float = 4.0
    tolerance: float = 0.1

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(1 <= self.bits <= 8, "ecuq.bits must be from 1 to 8", self.bits)
        require(0 < self.tolerance <= 1, "ecuq.tolerance must be in (0, 1]", self.tolerance)

    @property
    def expands(self) -> bool:
        """True if the search may end with two levels, which move values near zero to about half the largest."""
        return self.bits - self.tolerance <= 1

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator | None = None) -> Parcel:
        """Return one block per tensor, dense if that is smaller; no random numbers are drawn."""
        del rng
        return pack_tensors(to_dense(tensors), schema, self._pack)

    def _pack(self, flat: np.ndarray) -> Block:
        dense = dense_block(flat)
        if flat.dtype.kind != "f" or not len(flat):
            return dense
        ends = to_little_endian(np.array([flat.min(), flat.max()]))
        span = float(ends[1]) - float(ends[0])
        if not np.isfinite(span):
            return dense
        block = Block(GRID, len(flat), (ends, np.array([1], "<u2")))  # all values equal: one level
        if span:
            block = self._pack_grid(flat, ends)
        return block if block.field_bytes < dense.field_bytes else dense

    def _pack_grid(self, flat: np.ndarray, ends: np.ndarray) -> Block:
        relative = (flat.astype(np.float64) - ends[0]) / (float(ends[1]) - float(ends[0]))  # in [0, 1]
        num_levels = self._num_levels(relative)
        indices = _indices(relative, num_levels)
        lengths = code_lengths(np.bincount(indices, minlength=num_levels))
        segments, stream = huffman_encode(indices, lengths)
        levels = np.array([num_levels], "<u2")
        return Block(GRID, len(flat), (ends, levels, pack_bits(lengths, LENGTH_BITS), segments, stream))

    def _num_levels(self, relative: np.ndarray) -> int:
        good, bad = int(2**self.bits), MAX_LEVELS + 1  # 2^bits levels cannot exceed the budget
        is_doubling, used = True, entropy(_indices(relative, good))
        while used < self.bits - self.tolerance and bad - good > 1:
            trial = min(2 * good, MAX_LEVELS) if is_doubling else (good + bad) // 2
            needed = entropy(_indices(relative, trial))
            if needed <= self.bits:
                good, used = trial, needed
            else:
                bad, is_doubling = trial, False
        return good


def entropy(indices: np.ndarray) -> float:
    """Return the entropy of the indices' empirical distribution, in bits."""
    counts = np.bincount(indices)
    shares = counts[counts > 0] / len(indices)
    return float(-(shares * np.log2(shares)).sum())


def _indices(relative: np.ndarray, num_levels: int) -> np.ndarray:
    return np.minimum((relative * num_levels).astype(np.int64), num_levels - 1)
