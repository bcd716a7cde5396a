"""CSV and Parquet files by named columns, with types and missing values checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from fedreuse.core.errors import DataError, suggest
from fedreuse.learning.files.cells import Cells, cells_of
from fedreuse.learning.files.coded import Coded
from fedreuse.learning.files.source import CHUNK, ColumnNames, Facts

__all__ = ["TableSource", "table_of"]

Batches = Callable[[Sequence[str]], Iterator[Any]]


@dataclass(frozen=True)
class TableSource:
    """Rows are examples; a column is a number per row, or one column holds a whole list or image per row."""

    where: str
    schema: Any
    batches: Batches
    """Gives record batches with the named columns, in order."""
    names: ColumnNames = field(default_factory=ColumnNames)
    shape: tuple[int, ...] | None = None

    def facts(self) -> Facts:
        """The named columns but the inputs, read alone."""
        for name in self.names.others():
            self._require_column(name)
        found = pa.Table.from_batches(
            list(self.batches(self.names.others())), pa.schema([self.schema.field(n) for n in self.names.others()])
        )
        names = self.names
        return Facts(
            self._coded(found, names.label),
            None if names.client is None else self._coded(found, names.client),
            None if names.time is None else self._times(found, names.time),
            None if names.split is None else self._coded(found, names.split),
        )

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        """From the types of the columns, or from the first list or image."""
        return self._cells.form()

    def chunks(self) -> Iterator[np.ndarray]:
        """Rows, batch by batch."""
        first = 0
        for batch in self._guarded(self.batches(self.input_names)):
            yield self._cells.read(batch, first)
            first += len(batch)

    def input_name(self, place: int) -> str:
        """The column."""
        names = self.input_names
        return f"column '{names[place] if len(names) > 1 else names[0]}'"

    @cached_property
    def input_names(self) -> tuple[str, ...]:
        """The chosen columns, or every column that has no other part."""
        chosen = self.names.inputs
        if chosen is None:
            chosen = tuple(name for name in self.schema.names if name not in self.names.others())
        for name in chosen:
            self._require_column(name)
        if not chosen:
            raise DataError(f"{self.where}: no column is left for the inputs; name them with task.input_columns")
        return chosen

    @cached_property
    def _cells(self) -> Cells:
        first = next(iter(self._guarded(self.batches(self.input_names))), None)
        fields = [self.schema.field(name) for name in self.input_names]
        return cells_of(fields, first, self.where, self.shape)

    def _guarded(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Errors of Arrow in one form."""
        try:
            yield from batches
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{self.where}: {_first_line(error)}; the file is damaged or cut short: get it again"
            ) from None

    def _require_column(self, name: str) -> None:
        if name not in self.schema.names:
            raise DataError(
                f"{self.where}: there is no column '{name}' (named by task.input_columns, label_column, "
                f"client_column, time_column or split_column); {suggest(name, self.schema.names)}"
            )

    def _coded(self, table: Any, name: str) -> Coded:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_floating(column.type):
            return Coded.of(column.to_numpy())
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if not is_text and not pa.types.is_integer(column.type):
            raise DataError(
                f"{self.where}: column '{name}' holds {column.type}, but labels, clients and splits are whole numbers "
                "or texts; name another column, or convert it"
            )
        encoded = column.combine_chunks().dictionary_encode()
        values = _values(encoded.dictionary)
        order = np.argsort(values, kind="stable")
        rank = np.empty(len(order) + 1, np.int64)
        rank[order], rank[-1] = np.arange(len(order)), -1
        return Coded(rank[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)], values[order])

    def _times(self, table: Any, name: str) -> np.ndarray:
        column = table.column(name)
        if column.null_count:
            row = int(np.argmax(column.is_null().to_numpy()))
            raise DataError(f"{self.where}: row {row} has no time in column '{name}'; fill it in, or drop the row")
        if pa.types.is_temporal(column.type):
            column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise DataError(
                f"{self.where}: column '{name}' holds {column.type}, but times are numbers, dates or timestamps"
            )
        times: np.ndarray = column.to_numpy()
        return times


def table_of(paths: Sequence[Path], names: ColumnNames, shape: tuple[int, ...] | None) -> TableSource:
    """One table in one or several files of the same columns, in the order of the paths.

    A Parquet file is read in pieces; a CSV file is read whole, because the type of a column shows only at its end.
    """
    where = str(paths[0] if len(paths) == 1 else paths[0].parent)
    try:
        if paths[0].suffix == ".csv":
            table = pa.concat_tables([pyarrow.csv.read_csv(path) for path in paths], promote_options="permissive")
            return TableSource(where, table.schema, lambda columns: iter(table.select(list(columns)).to_batches(CHUNK)),
                               names, shape)  # fmt: skip
        schemas = [pyarrow.parquet.read_schema(path) for path in paths]
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{where}: {_first_line(error)}; the file is damaged, cut short or of another form") from None
    for path, schema in zip(paths, schemas, strict=True):
        if not schema.equals(schemas[0]):
            raise DataError(
                f"{path}: its columns are not those of {paths[0]}; all files of a folder have the same columns"
            )

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        for path in paths:
            with pyarrow.parquet.ParquetFile(path) as file:
                yield from file.iter_batches(CHUNK, columns=list(columns))

    return TableSource(where, schemas[0], batches, names, shape)


def _values(dictionary: Any) -> np.ndarray:
    """Distinct values as NumPy has them: int64 or text."""
    if pa.types.is_integer(dictionary.type):
        numbers: np.ndarray = dictionary.to_numpy(zero_copy_only=False).astype(np.int64)
        return numbers
    return np.array(dictionary.to_pylist(), dtype=str)


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
