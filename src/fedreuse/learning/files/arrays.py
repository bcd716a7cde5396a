"""Arrays by name: an npz file, or a folder of npy files, which are memory-mapped."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.bounded import TooLarge, array_names, map_array, read_arrays
from fedreuse.core.errors import DataError, suggest
from fedreuse.learning.files.expansion import allowed_bytes, too_large
from fedreuse.learning.files.source import CHUNK, Coded, ColumnNames, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["ArraySource"]

_KINDS = "biuf"  # of numpy: bool, signed, unsigned, floating point


@dataclass(frozen=True)
class ArraySource:
    """Arrays of equal length: `inputs` of any shape, `label`, and the others that the column names select."""

    path: Path
    names: ColumnNames = field(default_factory=ColumnNames)

    @property
    def where(self) -> str:
        """The path."""
        return str(self.path)

    def facts(self) -> Facts:
        """Read the arrays that are not inputs."""
        names = self.names
        clients, times, splits = (None if name is None else self._column(name) for name in
                                  (names.client, names.time, names.split))  # fmt: skip
        return Facts(
            Coded.of(self._column(names.label, may_be_rows=True)),
            None if clients is None else Coded.of(clients),
            times,
            None if splits is None else Coded.of(splits),
        )

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        """Return shape and type of one row of the input array."""
        return self._inputs.shape[1:], self._inputs.dtype

    def chunks(self) -> Iterator[np.ndarray]:
        """Yield slices of the input array."""
        for start in range(0, len(self._inputs), CHUNK):
            yield self._inputs[start : start + CHUNK]

    def input_name(self, position: int) -> str:
        """Return the array's name and the position in a row."""
        return f"{self._input_name}, position {position} of an example"

    @property
    def _input_name(self) -> str:
        chosen = self.names.inputs or ("inputs",)
        if len(chosen) != 1:
            raise DataError(f"{self.where}: task.input_columns must name one array here, got {', '.join(chosen)}")
        return chosen[0]

    @cached_property
    def _inputs(self) -> np.ndarray:
        inputs = self._array(self._input_name)
        if inputs.ndim < 2 or inputs.dtype.kind not in _KINDS:
            raise DataError(
                f"{self.where}: the array '{self._input_name}' is {inputs.dtype} of shape {inputs.shape}; inputs are "
                "numbers, one row (or image) per example"
            )
        return inputs

    def _column(self, name: str, may_be_rows: bool = False) -> np.ndarray:
        """Read an array with one entry per example, or one row per example if `may_be_rows`."""
        column = self._array(name)
        if column.ndim == 2 and column.shape[1] == 1:
            column = column[:, 0]
        are_rows = may_be_rows and column.ndim == 2 and column.dtype.kind in _KINDS
        expected = (len(self._inputs), *(column.shape[1:] if are_rows else ()))
        if column.shape != expected or column.dtype.kind not in _KINDS + "UM":
            raise DataError(
                f"{self.where}: the array '{name}' is {column.dtype} of shape {column.shape}, but there are "
                f"{len(self._inputs)} inputs; one number or text per example is needed"
            )
        return column.astype(np.int64) if column.dtype.kind == "M" else column  # dates as numbers

    def _array(self, name: str) -> np.ndarray:
        """Read one array; NumPy refuses pickled objects."""
        try:
            if self.path.is_dir():
                self._require_array(name, sorted(file.stem for file in self.path.glob("*.npy")))
                return map_array(self.path / f"{name}.npy")
            self._require_array(name, array_names(self.path))
            return read_arrays(self.path, [name], allowed_bytes([self.path]))[name]
        except TooLarge as error:
            raise too_large(f"{self.where}, array '{name}'", error) from None
        except (OSError, ValueError, TypeError, KeyError, EOFError) as error:
            raise DataError(
                f"{self.where}: the array '{name}' cannot be read ({error}); write the file again with numpy.savez, "
                "without objects"
            ) from None

    def _require_array(self, name: str, known: list[str]) -> None:
        if name not in known:
            raise DataError(
                f"{self.where}: there is no array '{name}' (named by task.input_columns, task.label_column or the "
                f"like); {suggest(name, known)}"
            )
