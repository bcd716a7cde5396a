"""Columns of a table as one array of inputs: one number per column, one list per row, or one image per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from fedreuse.core.errors import DataError
from fedreuse.learning.files.images import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Cells", "cells_of"]


class Cells(Protocol):
    """A reader of the inputs in a batch of rows."""

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        """Return shape and type of one input."""
        ...

    def read(self, batch: Any, first_row: int) -> np.ndarray:
        """Return the inputs of a batch; `first_row` is the number of its first row in the file, for messages."""
        ...


def cells_of(fields: Sequence[Any], first: Any, where: str, shape: tuple[int, ...] | None) -> Cells:
    """Return the reader for the types of the columns; `first` is the first batch, or None.

    Raises:
        DataError: A column holds neither numbers nor, alone, lists or images; or there are no rows.
    """
    if len(fields) == 1:
        name, kind = fields[0].name, fields[0].type
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
        # Hugging Face stores an encoded image as a struct of its bytes and its path
        is_struct = pa.types.is_struct(kind) and "bytes" in [kind.field(n).name for n in range(kind.num_fields)]
        is_image = is_struct or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        if (is_list or is_image) and (first is None or not len(first)):
            raise DataError(f"{where}: column '{name}' has no rows")
        if is_list:
            return _Lists(name, first, where)
        if is_image:
            return _Images(name, first, where, shape)
    for field in fields:
        if pa.types.is_null(field.type):
            raise DataError(
                f"{where}: column '{field.name}' is empty in all rows; remove it, or name the others in "
                "task.input_columns"
            )
        if not (pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_boolean(field.type)):
            raise DataError(
                f"{where}: column '{field.name}' holds {field.type}, but inputs are numbers (or one column of lists "
                "or images); leave it out of task.input_columns, or convert it to numbers"
            )
    return _Numbers(tuple(field.name for field in fields))


class _Numbers:
    """One number per column, as float32; a null is NaN."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        return (len(self._names),), np.dtype(np.float32)

    def read(self, batch: Any, first_row: int) -> np.ndarray:
        del first_row
        inputs = np.empty((len(batch), len(self._names)), np.float32)
        for position, name in enumerate(self._names):
            column = batch.column(name)
            inputs[:, position] = column.cast(pa.float32(), safe=False).to_numpy(zero_copy_only=False)
        return inputs


class _Lists:
    """One list per row, all of one length: uint8 stays, other whole numbers become int64, fractions float32."""

    def __init__(self, name: str, first: Any, where: str) -> None:
        self._name, self._where = name, where
        values = first.column(name)
        flat = values.flatten()
        if not (pa.types.is_integer(flat.type) or pa.types.is_floating(flat.type)):
            raise DataError(f"{where}: column '{name}' holds lists of {flat.type}; lists of numbers are inputs")
        is_byte, is_whole = pa.types.is_uint8(flat.type), pa.types.is_integer(flat.type)
        self._length = len(flat) // len(values)
        self._dtype = np.dtype(np.uint8 if is_byte else np.int64 if is_whole else np.float32)

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        return (self._length,), self._dtype

    def read(self, batch: Any, first_row: int) -> np.ndarray:
        values = batch.column(self._name)
        # lists of fixed size have no lengths of their own
        lengths = values.value_lengths().to_numpy(zero_copy_only=False) if hasattr(values, "value_lengths") else None
        if lengths is not None and (lengths != self._length).any():
            row = int(np.argmax(lengths != self._length))
            raise DataError(
                f"{self._where}: row {first_row + row} has {lengths[row]} numbers in column '{self._name}', the first "
                f"row {self._length}; all inputs have one shape, so pad or cut them"
            )
        flat = values.flatten()
        if flat.null_count and self._dtype.kind != "f":
            raise DataError(f"{self._where}: column '{self._name}' has null entries in its lists; fill them in")
        numbers: np.ndarray = flat.to_numpy(zero_copy_only=False).astype(self._dtype, copy=False)
        return numbers.reshape(len(batch), self._length)


class _Images:
    """One encoded image (PNG, JPEG, ...) per row."""

    def __init__(self, name: str, first: Any, where: str, shape: tuple[int, ...] | None) -> None:
        self._name, self._where = name, where
        self._shape = shape or self._decode(first.column(name)[0], 0, None).shape

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        return self._shape, np.dtype(np.uint8)

    def read(self, batch: Any, first_row: int) -> np.ndarray:
        column = batch.column(self._name)
        return np.stack([self._decode(cell, first_row + row, self._shape) for row, cell in enumerate(column)])

    def _decode(self, cell: Any, row: int, shape: tuple[int, ...] | None) -> np.ndarray:
        value = cell.as_py()
        content = value.get("bytes") if isinstance(value, dict) else value
        return decode(content, f"{self._where}, row {row}", shape)
