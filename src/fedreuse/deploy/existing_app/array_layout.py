"""Conversion between Flower's array records and models, by name, in the order of the app."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from flwr.app import Array, ArrayRecord

from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.model import Model
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import from_arrays, to_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ArrayLayout", "arrays_of"]

_STATISTICS = ("running_mean", "running_var")
_FLOATS = ("float16", "float32", "float64")
_INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")


@dataclass(frozen=True)
class ArrayLayout:
    """Names, shapes and dtypes of an app's arrays.

    Floating-point arrays are weights, except BatchNorm's running statistics, which are buffers; integers and bools are
    counters. Weights and buffers are float32, or float64 if any of them is; counters are int64. Every array gets its
    own dtype back in a record.
    """

    arrays: tuple[tuple[str, tuple[int, ...], str], ...]

    @classmethod
    def of(cls, record: ArrayRecord) -> ArrayLayout:
        """Return the layout of a record."""
        return cls(tuple((name, tuple(array.shape), _dtype(name, array.dtype)) for name, array in record.items()))

    @classmethod
    def from_plain(cls, plain: Sequence[Sequence[Any]]) -> ArrayLayout:
        """Return the layout of plain data from `to_plain`, which may come from the network."""
        return cls(tuple((str(name), tuple(int(size) for size in shape), str(kind)) for name, shape, kind in plain))

    def to_plain(self) -> list[list[Any]]:
        """Return the layout as plain data, for JSON."""
        return [[name, list(shape), kind] for name, shape, kind in self.arrays]

    @cached_property
    def schema(self) -> ModelSchema:
        """Schema of the model: tensors by role."""
        specs = [_spec(*array) for array in self.arrays]
        roles = {role: [spec for spec in specs if spec.role == role] for role in ("weight", "buffer", "counter")}
        if not roles["weight"]:
            raise ConfigError("initial_arrays: no array holds weights; give the model's arrays, by name")
        weights, buffers, counters = (Schema(_of_one_dtype(part)) for part in roles.values())
        return ModelSchema(weights, buffers, counters)

    def model(self, arrays: Mapping[str, np.ndarray]) -> Model:
        """Return arrays as a model; raise RunError for other names, shapes or dtypes."""
        returned = tuple((name, tuple(array.shape), str(array.dtype)) for name, array in arrays.items())
        if sorted(returned) != sorted(self.arrays):
            raise RunError(f"the train function returns other arrays than it was given: {_difference(self, returned)}")
        schema = self.schema
        return Model(*(from_arrays(part, arrays) for part in (schema.weights, schema.buffers, schema.counters)))

    @property
    def shapes(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Names and shapes of the arrays, in order."""
        return tuple((name, shape) for name, shape, _ in self.arrays)

    def cast(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return arrays of known names in the app's own dtypes: an average of float32 or integers may be float64."""
        kinds = {name: np.dtype(kind) for name, _, kind in self.arrays}
        return {
            name: array if array.dtype == kinds[name] else _rounded(array, kinds[name])
            for name, array in arrays.items()
        }

    def record(self, model: Model) -> ArrayRecord:
        """Return a model, or a part of one, as a Flower record, in the app's order and dtypes."""
        parts = (model.weights, model.buffers, model.counters)
        arrays = {name: array for part in parts for name, array in to_arrays(part).items()}
        kept = [(name, kind) for name, _, kind in self.arrays if name in arrays]
        return ArrayRecord({name: Array(np.array(arrays[name], kind)) for name, kind in kept})


def arrays_of(record: ArrayRecord) -> dict[str, np.ndarray]:
    """Return a record as NumPy arrays."""
    return {name: array.numpy() for name, array in record.items()}


def _rounded(array: np.ndarray, kind: np.dtype[Any]) -> np.ndarray:
    return (array if kind.kind == "f" else np.rint(array)).astype(kind)


def _dtype(name: str, kind: str) -> str:
    try:
        return str(np.dtype(kind))
    except TypeError:  # an extension such as bfloat16
        raise _unsupported(name, kind) from None


def _unsupported(name: str, kind: str) -> ConfigError:
    return ConfigError(
        f"initial_arrays: {name} is {kind}; arrays of floats (16, 32, 64 bits), integers (but uint64) and bools can be "
        "sent: convert it, for example with .float(), or leave it out of the record"
    )


def _of_one_dtype(specs: list[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Return specs with the widest of their dtypes, in which every value is exact."""
    widest = str(np.result_type(*(spec.dtype for spec in specs))) if specs else ""
    return tuple(replace(spec, dtype=widest) for spec in specs)


def _spec(name: str, shape: tuple[int, ...], kind: str) -> TensorSpec:
    if kind in _INTEGERS:
        return TensorSpec(name, shape, "int64", "counter")
    if kind not in _FLOATS:
        raise _unsupported(name, kind)
    kind = "float64" if kind == "float64" else "float32"
    last = name.rpartition(".")[2]
    if last in _STATISTICS:
        return TensorSpec(name, shape, kind, "buffer", is_positive=last == "running_var")
    return TensorSpec(name, shape, kind)


def _difference(layout: ArrayLayout, returned: Sequence[tuple[Any, ...]]) -> str:
    given, got = {name: rest for name, *rest in layout.arrays}, {name: rest for name, *rest in returned}
    for name in sorted({*given, *got}):
        if given.get(name) != got.get(name):
            return f"{name} is {got.get(name, 'absent')}, but was {given.get(name, 'absent')}"
    return "a name occurs twice"
