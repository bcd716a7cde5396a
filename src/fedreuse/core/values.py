"""Storable states: trees of registered dataclasses, converted to plain data and arrays, and back.

Loading imports and executes nothing: a stored name must be that of a registered class.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, dataclass_transform

import numpy as np

from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.int_map import Deferred, IntMap
from fedreuse.core.schema import ModelSchema, Schema
from fedreuse.core.tensors import Tensors

__all__ = ["arrays_of", "flatten", "nbytes", "unflatten", "value"]

T = TypeVar("T")
_CLASSES: dict[str, type[Any]] = {}


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def value(cls: type[T]) -> type[T]:
    """Make a frozen dataclass that may be part of a state: stored, sent and compared by its content.

    Args:
        cls: The class to decorate. It is stored under its module and name, so that a class that moves cannot read
            states stored before.

    Returns:
        The dataclass.

    Example:
        >>> from fedreuse import value
        >>> @value
        ... class Seen:
        ...     rounds: int = 0
        >>> Seen(rounds=3).rounds
        3
    """
    made: type[T] = dataclasses.dataclass(frozen=True, eq=False)(cls)
    _CLASSES[f"{cls.__module__}.{cls.__qualname__}"] = made
    return made


def flatten(tree: object, schema: ModelSchema) -> tuple[Any, list[np.ndarray]]:
    """Convert a tree to plain data (for msgpack and JSON) and the arrays that it refers to by index.

    Args:
        tree: None, numbers, strings, bytes, arrays, tensors of the model, and tuples, mappings and `@value` classes of
            these.
        schema: The model's schema, by which tensors are stored without names and shapes.

    Raises:
        TypeError: If the tree holds anything else.
    """
    arrays: list[np.ndarray] = []

    def keep(array: np.ndarray) -> int:
        arrays.append(array)
        return len(arrays) - 1

    def walk(node: Any) -> Any:
        if node is None or isinstance(node, bool | int | float | str):
            return node
        if isinstance(node, bytes):
            return {"!": "bytes", "hex": node.hex()}
        if isinstance(node, Tensors):
            role, names = _locate(node.schema, schema)
            index = {} if node.index is None else _pack_index(node.index, node.schema.size, keep)
            return {"!": "tensors", "of": role, "names": names, "values": keep(node.values), **index}
        if isinstance(node, np.ndarray):
            return {"!": "array", "at": keep(node)}
        if isinstance(node, tuple):
            return {"!": "tuple", "items": [walk(item) for item in node]}
        if isinstance(node, Mapping):
            kind = "int map" if isinstance(node, IntMap) else "dict"
            return {"!": kind, "items": [[walk(key), walk(inner)] for key, inner in node.items()]}
        name = f"{type(node).__module__}.{type(node).__qualname__}"
        if name in _CLASSES:
            fields = {field.name: walk(getattr(node, field.name)) for field in dataclasses.fields(node)}
            return {"!": "value", "class": name, "fields": fields}
        raise TypeError(f"{name} cannot be part of a state; decorate it with @value or use plain data and Tensors")

    return walk(tree), arrays


def unflatten(plain: Any, arrays: list[np.ndarray], schema: ModelSchema) -> Any:
    """Restore the tree of `flatten`.

    Raises:
        RunDirectoryError: If the data names an unknown class.
    """

    def walk(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        kind = node["!"]
        if kind == "tensors":
            whole: Schema = getattr(schema, node["of"])
            part = whole if node["names"] is None else whole.subset(node["names"])
            return Tensors(part, arrays[node["values"]], _unpack_index(node, part.size, arrays))
        if kind == "bytes":
            return bytes.fromhex(node["hex"])
        if kind == "array":
            return arrays[node["at"]]
        if kind == "tuple":
            return tuple(walk(item) for item in node["items"])
        if kind in ("dict", "int map"):
            entries = {walk(key): walk(inner) for key, inner in node["items"]}
            return IntMap(entries) if kind == "int map" else entries
        if kind == "value" and node["class"] in _CLASSES:
            return _CLASSES[node["class"]](**{name: walk(inner) for name, inner in node["fields"].items()})
        raise RunDirectoryError(
            f"stored state names {node.get('class', kind)!r}, which this program does not know; use the version of "
            "fedreuse that wrote it, and run where the module of your own method can be imported"
        )

    return walk(plain)


def arrays_of(tree: object) -> Iterator[np.ndarray]:
    """Iterate over all arrays of a state; deferred entries are loaded."""
    for leaf in _leaves(tree):
        if isinstance(leaf, Deferred):
            yield from arrays_of(leaf.load())
        else:
            yield leaf


def nbytes(tree: object, seen: set[int] | None = None) -> int:
    """Return the bytes of the distinct arrays of a state; deferred entries are counted without loading them.

    Args:
        tree: The state.
        seen: Ids of arrays that were counted before; the ids of this state's arrays are added.
    """
    known: set[int] = set() if seen is None else seen
    total = 0
    for leaf in _leaves(tree):
        # views of one array count once
        base = leaf.base if isinstance(leaf, np.ndarray) and isinstance(leaf.base, np.ndarray) else leaf
        if id(base) not in known:
            known.add(id(base))
            total += leaf.nbytes
    return total


def _leaves(tree: object) -> Iterator[np.ndarray | Deferred]:
    if isinstance(tree, np.ndarray | Deferred):
        yield tree
    elif isinstance(tree, Tensors):
        yield tree.values
        if tree.index is not None:
            yield tree.index
    else:
        for inner in _inside(tree):
            yield from _leaves(inner)


def _inside(tree: object) -> Iterable[object]:
    if isinstance(tree, IntMap):
        return (entry for _, entry in tree.raw_items())
    if isinstance(tree, Mapping):
        return tree.values()
    if isinstance(tree, tuple):
        return tree
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return (getattr(tree, field.name) for field in dataclasses.fields(tree))
    return ()


def _pack_index(index: np.ndarray, size: int, keep: Callable[[np.ndarray], int]) -> dict[str, Any]:
    """Return positions as they are, or as one bit per coordinate if that is shorter."""
    if index.nbytes <= size // 8:
        return {"index": keep(index)}
    is_kept = np.zeros(size, bool)
    is_kept[index] = True
    return {"bits": keep(np.packbits(is_kept)), "dtype": index.dtype.str}


def _unpack_index(node: Mapping[str, Any], size: int, arrays: list[np.ndarray]) -> np.ndarray | None:
    if "bits" in node:
        return np.flatnonzero(np.unpackbits(arrays[node["bits"]], count=size)).astype(np.dtype(node["dtype"]))
    return arrays[node["index"]] if "index" in node else None


def _locate(part: Schema, schema: ModelSchema) -> tuple[str, list[str] | None]:
    """Return the role of some tensors, and their names unless they are all tensors of the role."""
    for role in ("weights", "buffers", "counters"):
        whole: Schema = getattr(schema, role)
        if part == whole:
            return role, None
        if len(part) and all(spec in whole.specs for spec in part):
            return role, [spec.name for spec in part]
    raise TypeError("a state holds tensors that are not part of the model")
