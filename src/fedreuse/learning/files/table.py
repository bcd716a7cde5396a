"""Tables by named columns: CSV, Parquet, and folders saved by Hugging Face `datasets`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from fedreuse.core.bounded import TooLarge, check_table
from fedreuse.core.errors import DataError, suggest
from fedreuse.learning.files.cells import Cells, cells_of
from fedreuse.learning.files.expansion import allowed_bytes, too_large
from fedreuse.learning.files.source import CHUNK, Coded, ColumnNames, Facts

__all__ = ["TableSource", "load_saved", "saved_splits", "table_of"]


@dataclass(frozen=True)
class TableSource:
    """A table whose rows are examples; inputs are several columns of numbers, or one column of lists or images."""

    where: str
    schema: Any
    batches: Callable[[Sequence[str]], Iterator[Any]]
    """Function that yields record batches with the named columns, in order."""
    names: ColumnNames = field(default_factory=ColumnNames)
    shape: tuple[int, ...] | None = None

    def facts(self) -> Facts:
        """Read the named columns that are not inputs."""
        names = self.names
        for name in names.others():
            self._require_column(name)
        schema = pa.schema([self.schema.field(name) for name in names.others()])
        table = pa.Table.from_batches(list(self.batches(names.others())), schema)
        return Facts(
            self._coded(table, names.label),
            None if names.client is None else self._coded(table, names.client),
            None if names.time is None else self._times(table, names.time),
            None if names.split is None else self._coded(table, names.split),
        )

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        """Return shape and type by the types of the columns, or by the first list or image."""
        return self._cells.form()

    def chunks(self) -> Iterator[np.ndarray]:
        """Yield the inputs batch by batch."""
        first = 0
        for batch in self._guarded(self.batches(self.input_names)):
            yield self._cells.read(batch, first)
            first += len(batch)

    def input_name(self, position: int) -> str:
        """Return the name of the column."""
        names = self.input_names
        return f"column '{names[position] if len(names) > 1 else names[0]}'"

    @cached_property
    def input_names(self) -> tuple[str, ...]:
        """The chosen columns, or every column without another role."""
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
        """Re-raise Arrow's errors with the path."""
        try:
            yield from batches
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.where}: {_first_line(error)}; the file is damaged or truncated") from None

    def _require_column(self, name: str) -> None:
        if name not in self.schema.names:
            raise DataError(
                f"{self.where}: there is no column '{name}' (named by task.input_columns, label_column, "
                f"client_column, time_column or split_column); {suggest(name, self.schema.names)}"
            )

    def _coded(self, table: Any, name: str) -> Coded:
        """Return a column of whole numbers or texts by its distinct values."""
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_null(column.type):
            raise DataError(_empty(self.where, name, len(table)))
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
        # Arrow numbers values as they appear; `Coded` wants them sorted, so each code becomes the rank of its value
        encoded = column.combine_chunks().dictionary_encode()
        distinct = encoded.dictionary
        values = (
            np.array(distinct.to_pylist(), dtype=str)
            if is_text
            else distinct.to_numpy(zero_copy_only=False).astype(np.int64)
        )
        order = np.argsort(values, kind="stable")
        rank = np.empty(len(order) + 1, np.int64)
        rank[order], rank[-1] = np.arange(len(order)), -1
        return Coded(rank[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)], values[order])

    def _times(self, table: Any, name: str) -> np.ndarray:
        """Return a column of numbers, dates or timestamps as numbers."""
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
    """Return one table from one or several files with the same columns, in the order of the paths.

    A Parquet file is read in pieces; a CSV file is read whole, because the type of a column is known only at its end.

    Raises:
        DataError: A file cannot be read, or its columns differ from those of the first file.
    """
    where = str(paths[0] if len(paths) == 1 else paths[0].parent)
    try:
        if paths[0].suffix == ".csv":
            parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)  # a quoted text may have several lines
            tables = [pyarrow.csv.read_csv(path, parse_options=parsing) for path in paths]
            table = pa.concat_tables(tables, promote_options="permissive")
            return TableSource(where, table.schema, lambda columns: iter(table.select(list(columns)).to_batches(CHUNK)),
                               names, shape)  # fmt: skip
        limit = allowed_bytes(paths)
        schemas = [_checked_schema(path, limit) for path in paths]
    except TooLarge as error:
        raise too_large(where, error) from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{where}: {_first_line(error)}; the file is damaged, truncated or of another format") from None
    for path, schema in zip(paths, schemas, strict=True):
        if not schema.equals(schemas[0]):
            raise DataError(
                f"{path}: its columns are not those of {paths[0]}; all files of a folder have the same columns"
            )

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        total = 0
        for path in paths:
            with pyarrow.parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(CHUNK, columns=list(columns)):
                    total += batch.nbytes  # texts and images that repeat are stored once, and unpacked here
                    if total > limit:
                        raise too_large(where, TooLarge(f"its columns have more than {limit:,} bytes"))
                    yield batch

    return TableSource(where, schemas[0], batches, names, shape)


def _checked_schema(path: Path, limit: int) -> Any:
    """Return the columns of a Parquet file; refuse one that unpacks to more than the limit."""
    with pyarrow.parquet.ParquetFile(path) as file:
        check_table(file.metadata, limit)
        return file.schema_arrow


def saved_splits(path: Path, names: ColumnNames, shape: tuple[int, ...] | None) -> dict[str, TableSource]:
    """Return the tables of a folder that Hugging Face `datasets` saved, by split; the key of a single table is empty.

    The tables stay on disk, memory-mapped.

    Raises:
        DataError: The package `datasets` is missing, or the folder is incomplete.
    """
    return {
        split: TableSource(
            f"{path}/{split}".rstrip("/"), table.data.schema, partial(_saved_batches, table), names, shape
        )
        for split, table in load_saved(path).items()
    }


def load_saved(path: Path) -> dict[str, Any]:
    """Return the datasets of a folder that Hugging Face `datasets` saved, by split; the key of a single one is empty.

    Raises:
        DataError: The package `datasets` is missing, or the folder is incomplete.
    """
    try:
        from datasets import DatasetDict, load_from_disk
    except ImportError as error:
        raise DataError(
            f"{path}: this folder was saved by Hugging Face datasets, which is not installed ({error}); pip install "
            "'fedreuse[data]'"
        ) from None
    try:
        saved = load_from_disk(str(path))
    except Exception as error:
        raise DataError(f"{path}: not a complete folder of `save_to_disk` ({error}); save it again") from None
    return dict(saved) if isinstance(saved, DatasetDict) else {"": saved}


def _saved_batches(table: Any, columns: Sequence[str]) -> Iterator[Any]:
    for part in table.with_format("arrow").select_columns(list(columns)).iter(CHUNK):
        yield from part.combine_chunks().to_batches()


def _empty(where: str, name: str, num_rows: int) -> str:
    """Return the message for a column without any value."""
    if not num_rows:
        return f"{where}: the table has a header but no rows; give a file with examples"
    return f"{where}: column '{name}' is empty in all {num_rows:,} rows; name another column, or fill it in"


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
