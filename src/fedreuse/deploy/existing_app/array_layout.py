"""Conversion between Flower's array records and models, by name, in the order of the app."""

from __future__ import annotations

from dataclasses import dataclass
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
_FLOATS = ("float32", "float64")


@dataclass(frozen=True)
class ArrayLayout:
    """Names, shapes and dtypes of an app's arrays.

    Floating-point arrays are weights, except BatchNorm's running statistics, which are buffers; integers are counters.
    """

    arrays: tuple[tuple[str, tuple[int, ...], str], ...]

    @classmethod
    def of(cls, record: ArrayRecord) -> ArrayLayout:
        """Return the layout of a record."""
        return cls(tuple((name, tuple(array.shape), str(np.dtype(array.dtype))) for name, array in record.items()))

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
        roles = {role: tuple(spec for spec in specs if spec.role == role) for role in ("weight", "buffer", "counter")}
        if not roles["weight"]:
            raise ConfigError("initial_arrays: no array holds weights; give the model's arrays, by name")
        try:
            return ModelSchema(Schema(roles["weight"]), Schema(roles["buffer"]), Schema(roles["counter"]))
        except ValueError as error:
            raise ConfigError(
                f"initial_arrays: {error}; convert the network with .float() or .double() before its arrays are taken"
            ) from None

    def model(self, arrays: Mapping[str, np.ndarray]) -> Model:
        """Return arrays as a model; raise RunError for other names, shapes or dtypes."""
        returned = tuple((name, tuple(array.shape), str(array.dtype)) for name, array in arrays.items())
        if sorted(returned) != sorted(self.arrays):
            raise RunError(f"the train function returns other arrays than it was given: {_difference(self, returned)}")
        schema = self.schema
        return Model(*(from_arrays(part, arrays) for part in (schema.weights, schema.buffers, schema.counters)))

    def record(self, model: Model) -> ArrayRecord:
        """Return a model as a Flower record, in the app's order."""
        parts = (model.weights, model.buffers, model.counters)
        arrays = {name: array for part in parts for name, array in to_arrays(part).items()}
        return ArrayRecord({name: Array(np.array(arrays[name])) for name, _, _ in self.arrays})


def arrays_of(record: ArrayRecord) -> dict[str, np.ndarray]:
    """Return a record as NumPy arrays."""
    return {name: array.numpy() for name, array in record.items()}


def _spec(name: str, shape: tuple[int, ...], kind: str) -> TensorSpec:
    if kind == "int64":
        return TensorSpec(name, shape, kind, "counter")
    if kind not in _FLOATS:
        raise ConfigError(
            f"initial_arrays: {name} is {kind}; only float32, float64 and int64 can be sent: convert it, or leave it "
            "out of the record"
        )
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
