"""Tensors and states of links with their large arrays in mapped files (see `core.mapped`)."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from fedreuse.core.mapped import is_large, is_mapped, map_file, open_spool, write_pieces
from fedreuse.core.tensors import Tensors

__all__ = ["spooled", "spooled_state"]


def spooled(tensors: Tensors) -> Tensors:
    """Return the same tensors with large arrays in files; small ones, and those already there, as they are."""
    if not is_large(tensors.nbytes) or is_mapped(tensors.values):
        return tensors
    index = None if tensors.index is None else _moved(tensors.index)
    return Tensors(tensors.schema, _moved(tensors.values), index)


def _moved(array: np.ndarray) -> np.ndarray:
    with open_spool() as file:
        write_pieces(file, [np.ascontiguousarray(array).data])
        return np.frombuffer(map_file(file), array.dtype)


def spooled_state(state: Any) -> Any:
    """Return a link's state with its large tensors in files, at any depth of its fields."""
    if isinstance(state, Tensors):
        return spooled(state)
    if not is_dataclass(state) or isinstance(state, type):
        return state
    before = {field.name: getattr(state, field.name) for field in fields(state)}
    after = {name: spooled_state(inner) for name, inner in before.items()}
    changed = {name: inner for name, inner in after.items() if inner is not before[name]}
    return replace(state, **changed) if changed else state
