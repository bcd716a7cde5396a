"""Named tensors as views of one flat vector, dense or sparse, and arithmetic on them in NumPy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.mapped import is_large, vacant
from fedreuse.core.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

__all__ = [
    "Tensors",
    "add",
    "add_bits",
    "distance",
    "dot",
    "drop_rows",
    "from_arrays",
    "is_equal",
    "is_finite",
    "pick",
    "scale",
    "squares",
    "sub",
    "sub_bits",
    "to_arrays",
    "to_dense",
    "weighted_sum",
    "zeros",
]


@dataclass(frozen=True, eq=False)
class Tensors:
    """Named tensors stored in one flat vector in schema order; sparse ones hold only some coordinates.

    Args:
        schema: Names and shapes of the tensors.
        values: A one-dimensional array of the schema's dtype, with one entry per coordinate or one per entry of
            `index`. It becomes read-only.
        index: Flat positions of the values in increasing order; None if every coordinate is held.

    Raises:
        ValueError: If the number or dtype of the values does not fit the schema.

    Example:
        >>> import numpy as np
        >>> from fedreuse import Schema, Tensors, TensorSpec
        >>> schema = Schema((TensorSpec("a", (2, 2)), TensorSpec("b", (3,))))
        >>> Tensors(schema, np.arange(7, dtype=np.float32))["b"]
        array([4., 5., 6.], dtype=float32)
        >>> sparse = Tensors(schema, np.float32([9]), index=np.array([1]))
        >>> sparse["a"].tolist()
        [[0.0, 9.0], [0.0, 0.0]]
    """

    schema: Schema
    values: np.ndarray
    index: np.ndarray | None = None

    def __post_init__(self) -> None:
        """Check the arrays and make them read-only."""
        wanted = self.schema.size if self.index is None else len(self.index)
        if self.values.shape != (wanted,) or self.values.dtype != self.schema.dtype:
            raise ValueError(
                f"expected {wanted} values of {self.schema.dtype}, got {self.values.dtype} {self.values.shape}"
            )
        if self.values.flags.writeable:
            object.__setattr__(self, "values", _read_only(self.values))
        if self.index is not None and self.index.flags.writeable:
            object.__setattr__(self, "index", _read_only(self.index))

    @property
    def is_sparse(self) -> bool:
        """True if only some coordinates are held."""
        return self.index is not None

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return self.values.nbytes + (0 if self.index is None else self.index.nbytes)

    def __getitem__(self, name: str) -> np.ndarray:
        """Return one tensor in its shape; a view if dense."""
        position = self.schema.positions[name]
        start, stop = self.schema.offsets[position : position + 2]
        return to_dense(self).values[start:stop].reshape(self.schema.specs[position].shape)


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.setflags(write=False)
    return view


_BLOCK = 1 << 20
"""Coordinates that sums hold in double precision at once, so that their memory does not grow with the model."""
_SMALL, _AT_ONCE = 1 << 10, 64
"""Coordinates up to which vectors are squared together, and how many of them."""
_NOTHING = Tensors(Schema(), np.empty(0, np.float32))


def zeros(schema: Schema) -> Tensors:
    """Return tensors of zeros."""
    if not schema.specs:
        return _NOTHING
    return Tensors(schema, np.zeros(schema.size, schema.dtype))


def from_arrays(schema: Schema, arrays: Mapping[str, np.ndarray]) -> Tensors:
    """Gather named arrays into one flat vector."""
    flat = np.empty(schema.size, schema.dtype)
    for spec, start in zip(schema, schema.offsets, strict=False):
        array = np.asarray(arrays[spec.name])
        if array.shape != spec.shape:
            raise ValueError(f"{spec.name}: shape {spec.shape} expected, got {array.shape}")
        flat[start : start + spec.size] = array.reshape(-1)
    return Tensors(schema, flat)


def to_arrays(tensors: Tensors) -> dict[str, np.ndarray]:
    """Return each tensor in its shape, by name."""
    dense = to_dense(tensors)
    return {spec.name: dense[spec.name] for spec in tensors.schema}


def to_dense(tensors: Tensors) -> Tensors:
    """Return the same tensors with every coordinate held."""
    if tensors.index is None:
        return tensors
    flat = np.zeros(tensors.schema.size, tensors.schema.dtype)
    flat[tensors.index] = tensors.values
    return Tensors(tensors.schema, flat)


def add(left: Tensors, right: Tensors) -> Tensors:
    """Return the dense sum."""
    if right.index is None:
        return Tensors(left.schema, _computed(np.add, left, right))
    flat = to_dense(left).values.copy()
    flat[right.index] += right.values
    return Tensors(left.schema, flat)


def sub(left: Tensors, right: Tensors) -> Tensors:
    """Return the dense difference."""
    if not left.schema.specs:
        return left
    if right.index is None:
        return Tensors(left.schema, _computed(np.subtract, left, right))
    flat = to_dense(left).values.copy()
    flat[right.index] -= right.values
    return Tensors(left.schema, flat)


def _computed(rule: np.ufunc, left: Tensors, right: Tensors) -> np.ndarray:
    """Return a sum or difference of dense vectors, in a mapped file if it is large."""
    first, second = to_dense(left).values, right.values
    if not is_large(first.nbytes):
        result: np.ndarray = rule(first, second)
        return result
    return rule(first, second, out=vacant(len(first), np.result_type(first, second)))  # type: ignore[no-any-return]


def add_bits(left: Tensors, right: Tensors) -> Tensors:
    """Return the sum of the bit patterns, read as unsigned integers that wrap around; inverts `sub_bits` exactly."""
    return Tensors(left.schema, (_patterns(left) + _patterns(right)).view(left.schema.dtype))


def sub_bits(left: Tensors, right: Tensors) -> Tensors:
    """Return the difference of the bit patterns, read as unsigned integers that wrap around; nothing is rounded."""
    return Tensors(left.schema, (_patterns(left) - _patterns(right)).view(left.schema.dtype))


def _patterns(tensors: Tensors) -> np.ndarray:
    dense = to_dense(tensors).values
    return dense.view(f"u{dense.dtype.itemsize}")


def scale(tensors: Tensors, factor: float) -> Tensors:
    """Return the product with a number, in the tensors' precision; sparse tensors stay sparse."""
    return Tensors(tensors.schema, tensors.values * tensors.schema.dtype.type(factor), tensors.index)


def dot(left: Tensors, right: Tensors) -> float:
    """Return the inner product in double precision; not by BLAS, whose sums depend on the number of cores."""
    first, second = to_dense(left).values, to_dense(right).values
    return _sum(lambda start, stop: first[start:stop].astype(np.float64) * second[start:stop], len(first))


def squares(several: Iterable[Tensors]) -> list[float]:
    """Return the squared norm of each, with the bits of `dot(one, one)`; small tensors share a call of NumPy."""
    found: list[float] = []
    for _, alike in groupby(several, key=lambda one: None if one.is_sparse else one.values.shape):
        held = list(alike)
        if held[0].is_sparse or held[0].values.size > _SMALL:
            found += [dot(one, one) for one in held]
            continue
        for start in range(0, len(held), _AT_ONCE):
            rows = np.array([one.values for one in held[start : start + _AT_ONCE]], np.float64)
            found += np.sum(np.square(rows, out=rows), axis=1).tolist()
    return found


def distance(left: Tensors, right: Tensors) -> float:
    """Return the norm of the difference, which is rounded to the tensors' precision as by `sub`."""
    first, second = to_dense(left).values, to_dense(right).values

    def squares(start: int, stop: int) -> np.ndarray:
        away: np.ndarray = first[start:stop] - second[start:stop]
        squared: np.ndarray = away.astype(np.float64) * away
        return squared

    return sqrt(_sum(squares, len(first)))


def _sum(terms: Callable[[int, int], np.ndarray], size: int) -> float:
    """Return the sum of all terms with the bits of `np.sum`, without holding them all.

    NumPy halves a long vector, at a multiple of eight, and adds the sums of the halves; so they can be computed one
    after the other.
    """

    def of(start: int, stop: int) -> float:
        length = stop - start
        if length <= _BLOCK:
            return float(np.sum(terms(start, stop)))
        half = length // 2
        half -= half % 8
        return of(start, start + half) + of(start + half, stop)

    return of(0, size)


def pick(tensors: Tensors, names: Collection[str]) -> Tensors:
    """Return only the named tensors."""
    schema = tensors.schema.subset(names)
    if schema is tensors.schema:
        return tensors
    arrays = to_arrays(tensors)
    return from_arrays(schema, {name: arrays[name] for name in names})


def drop_rows(tensors: Tensors, rows: Mapping[str, Collection[int]]) -> Tensors:
    """Return the tensors without these rows; a tensor that loses all rows is left out."""
    specs, pieces = [], []
    for spec in tensors.schema:
        array = tensors[spec.name]
        if spec.name in rows:
            kept = tuple(row for row in range(spec.shape[0]) if row not in rows[spec.name])
            spec, array = replace(spec, shape=(len(kept), *spec.shape[1:]), rows=kept), array[list(kept)]
        if array.size:
            specs.append(spec)
            pieces.append(array.reshape(-1))
    schema = Schema(tuple(specs))
    return Tensors(schema, np.concatenate(pieces) if pieces else np.empty(0, schema.dtype))


def weighted_sum(terms: Iterable[tuple[float, Tensors]], schema: Schema) -> Tensors:
    """Return the sum of weight * tensors, accumulated in double precision in the given order.

    Integer sums are rounded half to even. A sparse term adds only the coordinates it holds, with the same bits as its
    dense form. A term may hold a subset of the schema's tensors; it adds nothing to the others.
    """
    given = terms if schema.size <= _BLOCK else list(terms)
    is_integer = np.issubdtype(schema.dtype, np.integer)
    summed = vacant(schema.size, schema.dtype)
    for start in range(0, schema.size, _BLOCK):
        total = np.zeros(min(_BLOCK, schema.size - start), np.float64)
        for weight, tensors in given:
            if tensors.schema is schema or tensors.schema == schema:
                _accumulate(total, weight, tensors, start)
            else:
                _accumulate_part(total, weight, to_dense(tensors), (schema, start))
        summed[start : start + len(total)] = np.rint(total, out=total) if is_integer else total
    return Tensors(schema, summed)


def _accumulate(total: np.ndarray, weight: float, tensors: Tensors, start: int) -> None:
    """Add the coordinates from `start` on."""
    stop = start + len(total)
    if tensors.index is None:
        total += tensors.values[start:stop].astype(np.float64) * weight
        return
    first, last = np.searchsorted(tensors.index, (start, stop))
    total[tensors.index[first:last] - start] += tensors.values[first:last].astype(np.float64) * weight


def _accumulate_part(total: np.ndarray, weight: float, dense: Tensors, where: tuple[Schema, int]) -> None:
    """Add tensors that are a part of the schema, by name."""
    schema, start = where
    for spec, own in zip(dense.schema, dense.schema.offsets, strict=False):
        target = schema.offsets[schema.positions[spec.name]]
        first, last = max(target, start), min(target + spec.size, start + len(total))
        if first < last:
            piece = dense.values[own + first - target : own + last - target].astype(np.float64)
            total[first - start : last - start] += weight * piece


def is_finite(tensors: Tensors) -> bool:
    """Return whether all coordinates are finite."""
    return bool(np.isfinite(tensors.values).all())


def is_equal(left: Tensors, right: Tensors) -> bool:
    """Return whether two hold the same bits, dense or sparse."""
    return left.schema == right.schema and to_dense(left).values.tobytes() == to_dense(right).values.tobytes()
