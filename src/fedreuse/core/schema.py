"""Names, shapes, dtypes and roles of a model's tensors, known at both ends and therefore never sent."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from math import prod
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["ModelSchema", "Role", "Schema", "TensorSpec"]

Role = Literal["weight", "buffer", "counter"]


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, shape, dtype and role of one tensor.

    Args:
        name: The tensor's name in torch, such as `layer.weight`.
        shape: Its shape.
        dtype: NumPy's name of the dtype.
        role: `weight` (trained), `buffer` (floating point, not trained) or `counter` (integer).
        is_positive: Marks a variance, which must stay above zero.
        rows: Indices of the rows that a message contains, if it leaves out some; `shape` counts only these rows.
        is_head: Marks a weight of the network's head; ignored in comparisons, because only one end may know it.

    Example:
        >>> from fedreuse import TensorSpec
        >>> spec = TensorSpec("conv1.weight", (32, 1, 5, 5))
        >>> spec.size, spec.dense_bytes, spec.layer
        (800, 3200, 'conv1')
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    role: Role = "weight"
    is_positive: bool = False
    rows: tuple[int, ...] | None = None
    is_head: bool = field(default=False, compare=False)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return prod(self.shape)

    @property
    def width(self) -> int:
        """Bytes of one coordinate."""
        return np.dtype(self.dtype).itemsize

    @property
    def dense_bytes(self) -> int:
        """Bytes of all coordinates."""
        return self.size * self.width

    @property
    def layer(self) -> str:
        """Name of the module the tensor belongs to."""
        return self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Schema:
    """An ordered list of tensors of one dtype, stored one after another in a flat vector.

    Args:
        specs: The tensors, with unique names.

    Raises:
        ValueError: If dtypes differ or a name is repeated.

    Example:
        >>> from fedreuse import Schema, TensorSpec
        >>> schema = Schema((TensorSpec("a", (2, 3)), TensorSpec("b", (4,))))
        >>> schema.size, schema.offsets, schema.dense_bytes
        (10, (0, 6, 10), 40)
    """

    specs: tuple[TensorSpec, ...] = field(default=())

    def __post_init__(self) -> None:
        """Check that the dtypes are equal and the names unique."""
        if len({spec.dtype for spec in self.specs}) > 1:
            raise ValueError(f"one dtype per schema, got {sorted({spec.dtype for spec in self.specs})}")
        if len({spec.name for spec in self.specs}) != len(self.specs):
            raise ValueError("tensor names must be unique")

    def __iter__(self) -> Iterator[TensorSpec]:
        """Iterate over the tensors in order."""
        return iter(self.specs)

    def __len__(self) -> int:
        """Return the number of tensors."""
        return len(self.specs)

    @cached_property
    def dtype(self) -> np.dtype[np.generic]:
        """dtype of the flat vector."""
        return np.dtype(self.specs[0].dtype if self.specs else "float32")

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Start of each tensor in the flat vector, followed by the end of the last."""
        ends = [0]
        for spec in self.specs:
            ends.append(ends[-1] + spec.size)
        return tuple(ends)

    @property
    def size(self) -> int:
        """Number of coordinates of all tensors."""
        return self.offsets[-1]

    @property
    def dense_bytes(self) -> int:
        """Bytes of all tensors."""
        return self.size * self.dtype.itemsize

    @cached_property
    def positions(self) -> dict[str, int]:
        """Index of each name in `specs`."""
        return {spec.name: position for position, spec in enumerate(self.specs)}

    def subset(self, names: Collection[str]) -> Schema:
        """Return the schema of the named tensors, in this schema's order."""
        unknown = set(names) - self.positions.keys()
        if unknown:
            raise KeyError(f"no such tensors: {sorted(unknown)}")
        return self if len(names) == len(self.specs) else Schema(tuple(s for s in self.specs if s.name in names))


@dataclass(frozen=True)
class ModelSchema:
    """All tensors of a model by role; the tensors of each role are sent as separate message groups."""

    weights: Schema
    buffers: Schema = field(default_factory=Schema)
    counters: Schema = field(default_factory=Schema)
    frozen: str = field(default="", compare=False)
    """Digest of the weights that are neither trained nor sent; empty if there are none."""

    def of_group(self, group: str) -> Schema:
        """Return the schema of a message group: of the buffers or counters for these groups, else of the weights."""
        return {"buffers": self.buffers, "counters": self.counters}.get(group, self.weights)

    @property
    def dense_bytes(self) -> int:
        """Bytes of one dense model."""
        return self.weights.dense_bytes + self.buffers.dense_bytes + self.counters.dense_bytes

    @property
    def size(self) -> int:
        """Number of coordinates of one model."""
        return self.weights.size + self.buffers.size + self.counters.size

    @property
    def num_tensors(self) -> int:
        """Number of tensors of all roles."""
        return len(self.weights) + len(self.buffers) + len(self.counters)

    @cached_property
    def num_rows(self) -> int:
        """Number of rows of all tensors; a scalar counts as one row."""
        tensors = (*self.weights, *self.buffers, *self.counters)
        return sum(spec.shape[0] if spec.shape else 1 for spec in tensors)

    @cached_property
    def digest(self) -> str:
        """Hash of the schema, which both ends compare once."""
        rows = [
            [spec.name, list(spec.shape), spec.dtype, spec.role, spec.is_positive]
            for schema in (self.weights, self.buffers, self.counters)
            for spec in schema
        ]
        return sha256(json.dumps(rows).encode()).hexdigest()

    def head(self) -> tuple[str, ...]:
        """Return the names of the weights marked as the head or, without marks, of those in the last layer."""
        marked = tuple(spec.name for spec in self.weights if spec.is_head)
        return marked or tuple(spec.name for spec in self.weights if spec.layer == self.weights.specs[-1].layer)

    def with_head(self, names: Collection[str]) -> ModelSchema:
        """Return the schema with exactly these weights marked as the head."""
        marked = tuple(replace(spec, is_head=spec.name in names) for spec in self.weights)
        return replace(self, weights=Schema(marked))
