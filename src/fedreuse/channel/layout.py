"""Conversion between named arrays and models: names, shapes and dtypes of the arrays, in their own order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedreuse.core.errors import ConfigError, WireError
from fedreuse.core.model import Model
from fedreuse.core.schema import ModelSchema, Role, Schema, TensorSpec
from fedreuse.core.tensors import from_arrays, to_arrays

__all__ = ["Arrays", "Layout", "to_numpy"]

Arrays = Mapping[str, Any]
"""Arrays by name: NumPy arrays, or tensors of a framework on any device."""
_STATISTICS = ("running_mean", "running_var")
_FLOATS = ("float16", "float32", "float64")
_INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")


def to_numpy(arrays: Arrays) -> dict[str, np.ndarray]:
    """Return arrays or tensors of a framework as NumPy arrays, by name.

    Raises:
        ConfigError: If an entry is no array.
    """
    if not isinstance(arrays, Mapping):
        raise ConfigError(f"arrays by name expected, such as {{'weight': ...}}, got {type(arrays).__name__}")
    return {str(name): _to_numpy(str(name), array) for name, array in arrays.items()}


def _to_numpy(name: str, array: Any) -> np.ndarray:
    if hasattr(array, "detach"):  # a torch tensor, perhaps with a gradient or on another device
        array = array.detach().cpu()
    try:
        found = np.asarray(array)
    except (TypeError, ValueError, RuntimeError) as error:
        kind = getattr(array, "dtype", type(array).__name__)
        raise ConfigError(f"{name} is {kind}, which NumPy cannot hold ({error}); convert it with .float()") from None
    if found.dtype.kind not in "fiub":
        raise ConfigError(f"{name} is {found.dtype}; floating-point, integer or bool arrays expected")
    return found


@dataclass(frozen=True)
class Layout:
    """Names, shapes and dtypes of a model's arrays.

    Floating-point arrays are weights, except running statistics (names that end in `running_mean` or `running_var`),
    which are buffers; integer and bool arrays are counters. Each of the three is sent in one dtype: the widest of its
    floating-point dtypes, at least float32, and int64. Both directions convert exactly and back.

    Args:
        arrays: Name, shape and dtype of each array.

    Raises:
        ConfigError: If a dtype cannot be sent, or no array holds weights.
    """

    arrays: tuple[tuple[str, tuple[int, ...], str], ...]

    def __post_init__(self) -> None:
        """Check the dtypes."""
        for name, _, kind in self.arrays:
            if kind not in _FLOATS + _INTEGERS:
                raise ConfigError(f"{name} is {kind}; a channel sends {', '.join(_FLOATS + _INTEGERS)}: convert it")
        if not any(_role(name, kind) == "weight" for name, _, kind in self.arrays):
            raise ConfigError("no array holds weights: give the model's floating-point arrays, by name")

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> Layout:
        """Return the layout of arrays."""
        return cls(_rows(arrays))

    @classmethod
    def from_plain(cls, plain: Sequence[Sequence[Any]]) -> Layout:
        """Return the layout of plain data from `to_plain`, which may come from the network."""
        rows = ((str(name), tuple(int(size) for size in shape), str(kind)) for name, shape, kind in plain)
        return cls(tuple(rows))

    def to_plain(self) -> list[list[Any]]:
        """Return the layout as plain data, for JSON."""
        return [[name, list(shape), kind] for name, shape, kind in self.arrays]

    @cached_property
    def schema(self) -> ModelSchema:
        """Schema of the model: tensors by role."""
        parts: dict[Role, list[TensorSpec]] = {"weight": [], "buffer": [], "counter": []}
        dtypes = {role: self._dtype(role) for role in parts}
        for name, shape, kind in self.arrays:
            role = _role(name, kind)
            is_positive = role == "buffer" and name.endswith("running_var")
            parts[role].append(TensorSpec(name, shape, dtypes[role], role, is_positive))
        weights, buffers, counters = (Schema(tuple(specs)) for specs in parts.values())
        return ModelSchema(weights, buffers, counters)

    def _dtype(self, role: Role) -> str:
        kinds = [np.dtype(kind) for name, _, kind in self.arrays if _role(name, kind) == role]
        return "int64" if role == "counter" else str(np.result_type(np.float32, *kinds))

    def model(self, arrays: Mapping[str, np.ndarray]) -> Model:
        """Return arrays as a model.

        Raises:
            ConfigError: If names, shapes or dtypes differ from the layout; the message names the first difference.
        """
        if sorted(_rows(arrays)) != sorted(self.arrays):
            raise ConfigError(f"these are not the arrays of this channel: {self.difference(_rows(arrays))}")
        schema = self.schema
        return Model(*(from_arrays(part, arrays) for part in (schema.weights, schema.buffers, schema.counters)))

    def to_arrays(self, model: Model) -> dict[str, np.ndarray]:
        """Return a model as new arrays, in the layout's order and dtypes."""
        parts = (model.weights, model.buffers, model.counters)
        found = {name: array for part in parts for name, array in to_arrays(part).items()}
        missing = [name for name, _, _ in self.arrays if name not in found]
        if missing:
            raise WireError(f"the message lacks {', '.join(missing)}")
        return {name: np.array(found[name]).astype(kind, copy=False) for name, _, kind in self.arrays}

    def difference(self, other: Sequence[tuple[Any, ...]]) -> str:
        """Return the first difference to other rows of name, shape and dtype, for messages."""
        own, got = ({name: (shape, kind) for name, shape, kind in rows} for rows in (self.arrays, other))
        for name in sorted({*own, *got}):
            if own.get(name) != got.get(name):
                return f"{name} is {_text(got.get(name))}, expected {_text(own.get(name))}"
        return "a name occurs twice"


def _rows(arrays: Mapping[str, np.ndarray]) -> tuple[tuple[str, tuple[int, ...], str], ...]:
    return tuple((name, tuple(array.shape), str(array.dtype)) for name, array in arrays.items())


def _role(name: str, kind: str) -> Role:
    if kind in _INTEGERS:
        return "counter"
    return "buffer" if name.rpartition(".")[2] in _STATISTICS else "weight"


def _text(row: tuple[tuple[int, ...], str] | None) -> str:
    return "absent" if row is None else f"{row[1]} {row[0]}"
