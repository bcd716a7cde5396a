"""How columns of a table become one array of inputs: numbers side by side, one list per row, or one image per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from fedreuse.core.errors import DataError
from fedreuse.learning.files.image import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Cells", "cells_of"]


class Cells(Protocol):
    """A way to read the inputs of a batch of rows."""

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        """Shape and type of one input."""
        ...

    def read(self, batch: Any, first_row: int) -> np.ndarray:
        """The inputs of a batch; `first_row` is its place in the file, for messages."""
        ...


def cells_of(fields: Sequence[Any], first: Any, where: str, shape: tuple[int, ...] | None) -> Cells:
    """The way that fits the types of the columns; `first` is the first batch, or None."""
    if len(fields) == 1 and _is_list(fields[0].type):
        return _Lists(fields[0].name, first, where)
    if len(fields) == 1 and _is_image(fields[0].type):
        return _Images(fields[0].name, first, where, shape)
    for field in fields:
        if not (pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_boolean(field.type)):
            raise DataError(
                f"{where}: column '{field.name}' holds {field.type}, but inputs are numbers (or one column of lists "
                "or images); leave it out of task.input_columns, or convert it to numbers"
            )
    return _Numbers(tuple(field.name for field in fields))


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_image(kind: Any) -> bool:
    """Encoded images: bytes, or the struct with bytes and path in which Hugging Face stores them."""
    has_bytes = pa.types.is_struct(kind) and "bytes" in [kind.field(number).name for number in range(kind.num_fields)]
    return bool(has_bytes or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


class _Numbers:
    """One number per column, as float32; a null is NaN."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        return (len(self._names),), np.dtype(np.float32)

    def read(self, batch: Any, first_row: int) -> np.ndarray:
        del first_row
        inputs = np.empty((len(batch), len(self._names)), np.float32)
        for place, name in enumerate(self._names):
            column = batch.column(name)
            inputs[:, place] = column.cast(pa.float32(), safe=False).to_numpy(zero_copy_only=False)
        return inputs


class _Lists:
    """One list of the same length in every row: uint8 stays, other whole numbers are int64, fractions float32."""

    def __init__(self, name: str, first: Any, where: str) -> None:
        self._name, self._where = name, where
        if first is None or not len(first):
            raise DataError(f"{where}: column '{name}' has no rows")
        values = first.column(name)
        self._length = len(_flat(values)) // len(values)
        kind = _flat(values).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise DataError(f"{where}: column '{name}' holds lists of {kind}; lists of numbers are inputs")
        is_byte, is_whole = pa.types.is_uint8(kind), pa.types.is_integer(kind)
        self._dtype = np.dtype(np.uint8 if is_byte else np.int64 if is_whole else np.float32)

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        return (self._length,), self._dtype

    def read(self, batch: Any, first_row: int) -> np.ndarray:
        values = batch.column(self._name)
        lengths = values.value_lengths().to_numpy(zero_copy_only=False) if hasattr(values, "value_lengths") else None
        if lengths is not None and (lengths != self._length).any():
            row = int(np.argmax(lengths != self._length))
            raise DataError(
                f"{self._where}: row {first_row + row} has {lengths[row]} numbers in column '{self._name}', the first "
                f"row {self._length}; all inputs have one shape, so pad or cut them"
            )
        flat = _flat(values)
        if flat.null_count and self._dtype.kind != "f":
            raise DataError(f"{self._where}: column '{self._name}' has empty places in its lists; fill them in")
        numbers: np.ndarray = flat.to_numpy(zero_copy_only=False).astype(self._dtype, copy=False)
        return numbers.reshape(len(batch), self._length)


class _Images:
    """One encoded image (PNG, JPEG, ...) per row."""

    def __init__(self, name: str, first: Any, where: str, shape: tuple[int, ...] | None) -> None:
        self._name, self._where = name, where
        if first is None or not len(first):
            raise DataError(f"{where}: column '{name}' has no rows")
        self._shape = shape or decode(_content(first.column(name)[0]), f"{where}, row 0", None).shape

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        return self._shape, np.dtype(np.uint8)

    def read(self, batch: Any, first_row: int) -> np.ndarray:
        column = batch.column(self._name)
        return np.stack([
            decode(_content(value), f"{self._where}, row {first_row + row}", self._shape)
            for row, value in enumerate(column)
        ])  # fmt: skip


def _flat(values: Any) -> Any:
    return values.flatten()


def _content(value: Any) -> bytes | None:
    plain = value.as_py()
    content: bytes | None = plain.get("bytes") if isinstance(plain, dict) else plain
    return content
