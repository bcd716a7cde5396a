"""Low rank: every tensor as a sum of few outer products of short vectors, the most useful per byte over all tensors.

E_0     = the tensor as a matrix of m rows and n columns
u, v    = power iterations: u = E_j v, v = E_j^T u, from the longest row of E_j
u'      = rint(7 u / max |u|)                             levels of 4 bits
v'      = the same of v = E_j^T u' / |u'|^2, with s = max |v| / 7
E_j+1   = E_j - s u' v'^T                                 contains the rounding, which later products correct
gain    = |E_j|^2 - |E_j+1|^2                             of 4 + (m + n) / 2 bytes

The products of all tensors are sent in the order of their gain per byte, while they fit into ratio * dense bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.wire.block import absent_block, dense_block
from fedreuse.compression.wire.modes.factors import TOP, factors_block, factors_bytes, matrix_shape
from fedreuse.compression.wire.modes.rows import rows_block
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.errors import require
from fedreuse.core.tensors import to_dense

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fedreuse.compression.wire.block import Block
    from fedreuse.core.schema import Schema, TensorSpec
    from fedreuse.core.tensors import Tensors

__all__ = ["MOST_WEIGHTS", "LowRank"]

MOST_WEIGHTS = 4_000_000
"""Weights up to which presets try this codec: each product takes several passes over its tensor."""

_SMALLEST, _LARGEST = 2.0**-100, 2.0**120
"""Largest magnitudes of tensors that have scales in float32, with room for their sums."""
_ITERATIONS = 3
"""Power iterations for a product; more of them hardly raise its gain."""


@codecs.register("low_rank")
@dataclass(frozen=True)
class LowRank(Codec):
    """Sums of outer products of vectors with 4-bit levels, allotted to the tensors by gain per byte.

    Args:
        ratio: Bytes as a share of the dense bytes, in (0, 1]. Tensors that get none are decoded as zero.

    Raises:
        ConfigError: If `ratio` is out of range.

    Example: `uplink: {update: {name: error_feedback, codec: {name: low_rank, ratio: 0.01}}}`.
    """

    drops_coordinates: ClassVar[bool] = False

    ratio: float = 0.02

    def __post_init__(self) -> None:
        """Check the range."""
        require(0 < self.ratio <= 1, "low_rank.ratio must be in (0, 1]", self.ratio)

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        """Return one block of products per tensor; dense for integers, and where that is smaller."""
        return self.by_ratio(tensors, schema, rng)(self.ratio)

    def by_ratio(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Callable[[float], Parcel]:
        """Return a function that encodes the same tensors at any ratio; it reuses the products found before."""
        del rng
        return _Search(to_dense(tensors), schema).at


class _Search:
    """The products of all tensors in the order in which they are sent, found as far as they were needed."""

    def __init__(self, dense: Tensors, schema: Schema) -> None:
        self._schema, part = schema, dense.schema
        self._each = [
            _Approximation(dense.values[start : start + spec.size], spec)
            for spec, start in zip(part, part.offsets, strict=False)
        ]
        self._dense_bytes = dense.values.nbytes
        self._order: list[int] = []
        """Number of the tensor of each product."""

    def at(self, ratio: float) -> Parcel:
        counts = [0] * len(self._each)
        left = int(ratio * self._dense_bytes)
        for number in self._products():
            one = self._each[number]
            left -= one.num_bytes(counts[number] + 1) - one.num_bytes(counts[number])
            if left < 0:
                break
            counts[number] += 1
        blocks = {one.spec.name: self._block(one, count) for one, count in zip(self._each, counts, strict=True)}
        return Parcel(tuple(blocks.get(spec.name, absent_block()) for spec in self._schema))

    def _block(self, one: _Approximation, count: int) -> Block:
        block, rows = one.block(count), one.spec.rows
        whole = self._schema.specs[self._schema.positions[one.spec.name]]
        return block if rows is None else rows_block(block, rows, whole.shape[0])

    def _products(self) -> Iterator[int]:
        """Yield the tensor of each product, the best per byte first; ties go to the first tensor."""
        yield from self._order
        while self._each:
            best = max(range(len(self._each)), key=lambda number: self._each[number].gain)
            if not self._each[best].gain > 0:
                return
            self._each[best].add()
            self._order.append(best)
            yield best


class _Approximation:
    """The products of one tensor that were taken, and the next one with its `gain` per byte, 0 if there is none."""

    def __init__(self, flat: np.ndarray, spec: TensorSpec) -> None:
        self.spec, self._flat, self._shape = spec, flat, matrix_shape(spec.shape)
        self._taken: list[tuple[np.float32, np.ndarray, np.ndarray]] = []
        top = np.abs(flat).max(initial=0)  # NaN if there is one
        self._is_whole = flat.dtype.kind != "f" or not (top == 0 or _SMALLEST <= top <= _LARGEST)
        """True for integers, and for values without a scale in float32 or that the receiver refuses: they are sent."""
        # a power of two, so that squares neither overflow nor vanish and nothing is rounded
        exponent = 0 if self._is_whole else int(np.frexp(top)[1])
        self._unit = np.ldexp(np.float32(1), exponent)
        self.gain = 0.0
        if not self._is_whole:
            self._error = np.ldexp(flat, -exponent).astype(np.float32).reshape(self._shape)
            self._find()

    def num_bytes(self, count: int) -> int:
        """Return the bytes of `count` products, or of the dense tensor if that is not longer."""
        return self._flat.nbytes if self._is_whole else min(factors_bytes(self._shape, count), self._flat.nbytes)

    def add(self) -> None:
        """Take the next product and find the one after it."""
        step, left, right = self._next
        self._taken.append(self._next)
        self._error -= (step * left)[:, None] * right
        self._find()

    def block(self, count: int) -> Block:
        """Return the first products, or the dense tensor if that is not longer."""
        if self.num_bytes(count) == self._flat.nbytes:
            return dense_block(self._flat)
        steps = np.array([step for step, _, _ in self._taken[:count]], np.float32) * self._unit
        left = np.array([left for _, left, _ in self._taken[:count]]).reshape(count, self._shape[0])
        right = np.array([right for _, _, right in self._taken[:count]]).reshape(count, self._shape[1])
        return factors_block(steps, left, right)

    def _find(self) -> None:
        self.gain, count = 0.0, len(self._taken)
        cost = self.num_bytes(count + 1) - self.num_bytes(count)
        if not cost or count >= min(self._shape):
            return
        error = self._error
        # einsum, not @: a BLAS library may sum in another order with another number of threads
        right = error[int(np.einsum("ij,ij->i", error, error).argmax())]
        for _ in range(_ITERATIONS):
            left = _unit(np.einsum("ij,j->i", error, right))
            right = _unit(np.einsum("ij,i->j", error, left))
        left, _ = _levels(np.einsum("ij,j->i", error, right))
        square = np.einsum("i,i->", left, left)
        if not square:
            return
        right = np.einsum("ij,i->j", error, left) / square
        levels, step = _levels(right)
        # |E|^2 - |E - s u v^T|^2, with E^T u = |u|^2 r
        gain = float(square) * float(step) * float(np.einsum("j,j->", levels, 2 * right - step * levels))
        self._next = step, left, levels
        self.gain = gain * float(self._unit) ** 2 / cost


def _unit(vector: np.ndarray) -> np.ndarray:
    """Return the vector divided by its largest magnitude."""
    top = np.abs(vector).max(initial=0)
    return vector / top if top else vector


def _levels(vector: np.ndarray) -> tuple[np.ndarray, np.float32]:
    """Return the vector as levels from -7 to 7, and the step between them."""
    step = np.float32(np.abs(vector).max(initial=0) / TOP)
    if not step:
        return np.zeros_like(vector), step
    return np.clip(np.rint(vector / step), -TOP, TOP), step
