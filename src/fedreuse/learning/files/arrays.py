"""Arrays by name: an npz file, or a folder of npy files, which are mapped instead of read."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import DataError, suggest
from fedreuse.learning.files.coded import Coded
from fedreuse.learning.files.source import CHUNK, ColumnNames, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["ArraySource"]

_KINDS = "biuf"


@dataclass(frozen=True)
class ArraySource:
    """Arrays of equal length: `inputs` of any shape, `label`, and whatever else the columns name."""

    path: Path
    names: ColumnNames = field(default_factory=ColumnNames)

    @property
    def where(self) -> str:
        """The path."""
        return str(self.path)

    def facts(self) -> Facts:
        """The arrays that are not inputs."""
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
        """That of the array of inputs."""
        return self._inputs.shape[1:], self._inputs.dtype

    def chunks(self) -> Iterator[np.ndarray]:
        """Slices of the array of inputs."""
        for start in range(0, len(self._inputs), CHUNK):
            yield self._inputs[start : start + CHUNK]

    def input_name(self, place: int) -> str:
        """The array, and the place in it."""
        return f"{self._input_name}, place {place} of an example"

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
        column = self._array(name)
        if column.ndim == 2 and column.shape[1] == 1:
            column = column[:, 0]
        are_rows = may_be_rows and column.ndim == 2 and column.dtype.kind in _KINDS
        wanted = (len(self._inputs), *(column.shape[1:] if are_rows else ()))
        if column.shape != wanted or column.dtype.kind not in _KINDS + "UM":
            raise DataError(
                f"{self.where}: the array '{name}' is {column.dtype} of shape {column.shape}, but there are "
                f"{len(self._inputs)} inputs; one number or text per example is needed"
            )
        return column.astype(np.int64) if column.dtype.kind == "M" else column

    def _array(self, name: str) -> np.ndarray:
        """One array; pickled objects are refused by NumPy."""
        try:
            if self.path.is_dir():
                known = sorted(file.stem for file in self.path.glob("*.npy"))
                _require_known(name, known, self.where)
                mapped: np.ndarray = np.load(self.path / f"{name}.npy", mmap_mode="r", allow_pickle=False)
                return mapped
            if not zipfile.is_zipfile(self.path):
                raise ValueError("it is no npz file, or cut short")
            with np.load(self.path, allow_pickle=False) as archive:
                _require_known(name, archive.files, self.where)
                array: np.ndarray = archive[name]
                return array
        except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise DataError(
                f"{self.where}: the array '{name}' cannot be read ({error}); write the file again with numpy.savez, "
                "without objects"
            ) from None


def _require_known(name: str, known: list[str], where: str) -> None:
    if name not in known:
        raise DataError(
            f"{where}: there is no array '{name}' (named by task.input_columns, task.label_column or the like); "
            f"{suggest(name, known)}"
        )
