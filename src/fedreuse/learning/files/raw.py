"""Raw tables as users have them: one file, tables named like splits, or a folder that Hugging Face `datasets` saved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from fedreuse.core.bounded import TooLarge, check_table
from fedreuse.core.errors import DataError
from fedreuse.learning.files.expansion import allowed_bytes, too_large
from fedreuse.learning.files.layout import SPLITS, splits_in
from fedreuse.learning.files.table import load_saved

__all__ = ["Raw", "is_raw_table", "read_raw"]

_FILES = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True)
class Raw:
    """A table before its preparation.

    Args:
        table: All rows.
        splits: Split of each row: `train`, `validation` or `test`; None: the source has no splits.
        left_out: Names of parts that are no splits, whose rows were left out.
    """

    table: Any
    splits: np.ndarray | None = None
    left_out: tuple[str, ...] = ()


def is_raw_table(path: Path, label: str, client: str | None) -> bool:
    """Return True for rows with columns to prepare: a table, whose input is not one column of lists or images.

    Args:
        path: A file or folder.
        label: Column of the label.
        client: Column of the client, or None.
    """
    is_saved = _is_saved(path)
    if not is_saved and path.is_dir():
        parts = splits_in(path)
        return bool(parts) and all(
            part.suffix in _FILES and is_raw_table(part, label, client) for part in parts.values()
        )
    if not is_saved and path.suffix != ".parquet":
        return path.suffix in _FILES
    try:
        saved = list(load_saved(path).values()) if is_saved else []
        schema = saved[0].data.schema if saved else pyarrow.parquet.read_schema(path)
    except (pa.ArrowException, OSError):
        return True  # reading it reports the damage
    inputs = [field for field in schema if field.name not in (label, client)]
    return len(inputs) != 1 or not (pa.types.is_nested(inputs[0].type) or pa.types.is_binary(inputs[0].type))


def read_raw(path: Path) -> Raw:
    """Read a CSV (separated by comma, semicolon, tabulator or bar) or Parquet file, or a folder with splits.

    Args:
        path: A file; a folder with tables named `train`, `test` and perhaps `validation`; a folder that Hugging Face
            `datasets` saved.

    Raises:
        DataError: A file cannot be read, has no rows, has two columns of one name, or the splits have other columns.
    """
    if not path.is_dir():
        return Raw(_checked(path, _read_file(path)))
    if not _is_saved(path):
        return _joined(path, {name: _checked(part, _read_file(part)) for name, part in splits_in(path).items()}, ())
    saved = {name: part.with_format("arrow")[:] for name, part in load_saved(path).items()}
    if "" in saved:
        return Raw(_checked(path, saved[""]))
    left_out = tuple(name for name in saved if name not in SPLITS)
    if not any(SPLITS.get(name) == "train" for name in saved):
        raise DataError(
            f"{path}: there is no train split among {', '.join(saved)}; save it with splits named train, validation "
            "and test"
        )
    parts = {SPLITS[name]: _checked(path / name, part) for name, part in saved.items() if name not in left_out}
    return _joined(path, parts, left_out)


def _is_saved(path: Path) -> bool:
    """Return True for a folder that Hugging Face `datasets` saved."""
    return (path / "state.json").is_file() or (path / "dataset_dict.json").is_file()


def _joined(path: Path, parts: dict[str, Any], left_out: tuple[str, ...]) -> Raw:
    """Return the rows of all splits in one table."""
    parts = {name: parts[name] for name in dict.fromkeys(SPLITS.values()) if name in parts}
    columns = parts["train"].column_names
    for name, part in parts.items():
        if missing := [column for column in columns if column not in part.column_names]:
            raise DataError(
                f"{path}: the {name} split has no column '{missing[0]}', which the train split has; add it, or remove "
                f"the {name} split"
            )
    try:
        table = pa.concat_tables([part.select(columns) for part in parts.values()], promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(f"{path}: columns of its splits have different types ({_first_line(error)})") from None
    splits = np.repeat(list(parts), [len(part) for part in parts.values()])
    return Raw(table, splits, left_out)


def _read_file(path: Path) -> Any:
    if not path.stat().st_size:
        raise DataError(f"{path}: the file is empty (0 bytes); give a file with a header and rows")
    try:
        return _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    except TooLarge as error:
        raise too_large(str(path), error) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {_first_line(error)}; the file is damaged, truncated or of another format") from None


def _checked(path: Path, table: Any) -> Any:
    """Return a table that has rows and no two columns of one name."""
    twice = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if twice:
        raise DataError(f"{path}: {len(twice)} column names occur twice, such as '{twice[0]}'; rename one of them")
    if not len(table):
        raise DataError(f"{path}: the table has a header but no rows; give a file with examples")
    return table


def _read_parquet(path: Path) -> Any:
    check_table(pyarrow.parquet.read_metadata(path), allowed_bytes([path]))
    return pyarrow.parquet.read_table(path)


def _read_csv(path: Path) -> Any:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        header = file.readline()
    separator = max(",;\t|", key=header.count)
    return pyarrow.csv.read_csv(
        path,
        parse_options=pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True),  # an empty cell is a missing value
    )


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
