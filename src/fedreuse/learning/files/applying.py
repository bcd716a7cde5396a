"""Apply a stored preparation to new rows: the inputs that a trained network expects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.errors import DataError, suggest
from fedreuse.learning.files.column_rules import MISSING, as_numbers, as_texts, with_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

__all__ = ["prepared_inputs"]


def prepared_inputs(record: Mapping[str, Any], table: pa.Table) -> np.ndarray:
    """Return the inputs of new rows, one row each, by the decisions of a preparation.

    Missing numbers become the median of training, and a category or text without known words is 0 in all its inputs.

    Args:
        record: Content of `preparation.json`.
        table: Rows with the columns of the raw table; the label, the client and dropped columns may be absent.

    Raises:
        DataError: A column is missing, or a value is missing in a column that had none in training.
    """
    medians = {each["column"]: each["values"]["median"] for each in record["decisions"] if "median" in each["values"]}
    encoded = {each["column"] for each in record["decisions"] if {"categories", "words"} & each["values"].keys()}
    columns = []
    words = _words(record, table)
    for name in record["inputs"]:
        if name in words:
            columns.append(words[name])
            continue
        column, _, category = name.rpartition("=")
        is_category = column in encoded and name not in table.column_names
        source = column if is_category else name
        if source not in table.column_names:
            raise DataError(f"column '{source}' is missing; {suggest(source, table.column_names)}")
        columns.append(
            _category(table.column(source), category) if is_category else _numbers(table, source, medians.get(source))
        )
    return np.stack(columns, axis=1).astype(np.float32)


def _category(column: Any, category: str) -> np.ndarray:
    codes, texts = as_texts(column)
    if category == MISSING:
        return codes < 0
    return codes == texts.index(category) if category in texts else np.zeros(len(codes), bool)


def _words(record: Mapping[str, Any], table: pa.Table) -> dict[str, np.ndarray]:
    """Return the inputs of all columns of free text, by name."""
    inputs: dict[str, np.ndarray] = {}
    for decision in record["decisions"]:
        name, words = decision["column"], decision["values"].get("words")
        if words and name in table.column_names:
            codes, texts = as_texts(table.column(name))
            inputs |= dict(zip([f"{name}={word}" for word in words], with_words(texts, words)[codes].T, strict=True))
    return inputs


def _numbers(table: pa.Table, name: str, median: float | None) -> np.ndarray:
    numbers, _ = as_numbers(table.column(name))
    if numbers is None:
        raise DataError(f"column '{name}' holds no numbers, as it did in training")
    missing = ~np.isfinite(numbers)
    if missing.any() and median is None:
        raise DataError(
            f"column '{name}' has no value in row {int(np.flatnonzero(missing)[0])}, but had one in every row of the "
            "training data; drop the row, or fill the value"
        )
    return np.where(missing, 0.0 if median is None else median, numbers)
