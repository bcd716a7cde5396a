"""A folder that Hugging Face `datasets` has saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import DataError
from fedreuse.learning.files.source import CHUNK, ColumnNames

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fedreuse.learning.files.table import TableSource

__all__ = ["is_saved_dataset", "saved_splits"]


def is_saved_dataset(path: Path) -> bool:
    """Whether `Dataset.save_to_disk` or `DatasetDict.save_to_disk` wrote this folder."""
    return (path / "dataset_dict.json").exists() or (path / "state.json").exists()


def saved_splits(path: Path, names: ColumnNames, shape: tuple[int, ...] | None) -> dict[str, TableSource]:
    """The tables of the folder by split; the key is empty where it is one table. They stay on disk, mapped."""
    try:
        from datasets import DatasetDict, load_from_disk
    except ImportError as error:
        raise DataError(
            f"{path}: this folder was saved by Hugging Face datasets, which is not installed ({error}); pip install "
            "'fedreuse[data]'"
        ) from None
    try:
        found = load_from_disk(str(path))
    except Exception as error:
        raise DataError(
            f"{path}: not a folder that `save_to_disk` has written whole ({error}); save it again"
        ) from None
    tables = dict(found) if isinstance(found, DatasetDict) else {"": found}
    return {split: _source(table, f"{path}/{split}".rstrip("/"), names, shape) for split, table in tables.items()}


def _source(table: Any, where: str, names: ColumnNames, shape: tuple[int, ...] | None) -> TableSource:
    from fedreuse.learning.files.table import TableSource

    rows = table.with_format("arrow")

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        for part in rows.select_columns(list(columns)).iter(CHUNK):
            yield from part.combine_chunks().to_batches()

    return TableSource(where, table.data.schema, batches, names, shape)
