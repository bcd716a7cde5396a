"""What tests of files share: a small table of visits, written in every form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from fedreuse.learning.data import Data
from fedreuse.learning.datasets.files import Files
from fedreuse.learning.files.layout import Located, locate
from fedreuse.learning.files.pool import Pool, gather
from fedreuse.learning.files.source import ColumnNames

COLUMNS: dict[str, list[Any]] = {
    "age": [30, 41, 52, 63, 24, 35, 46, 57, 68, 29],
    "dose": [0.5, 1.5, 2.5, 0.5, 1.5, 2.5, 0.5, 1.5, 2.5, 0.25],
    "label": ["ill", "well", "ill", "well", "ill", "well", "ill", "well", "ill", "well"],
    "site": ["b", "a", "b", "a", "b", "a", "b", "a", "b", "a"],
    "day": [5, 1, 4, 2, 3, 9, 8, 7, 6, 0],
}
NAMES = ColumnNames(("age", "dose"), "label", "site", "day")


def table(**changes: Any) -> pa.Table:
    return pa.table({**COLUMNS, **changes})


def write(path: Path, content: pa.Table) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(content, path)
    else:
        pyarrow.parquet.write_table(content, path)
    return path


def arrays(path: Path, count: int = 8, first: int = 0, **more: np.ndarray) -> Path:
    """An npz whose inputs all differ."""
    path.parent.mkdir(parents=True, exist_ok=True)
    inputs = np.arange(first, first + 2 * count, dtype=np.float32).reshape(count, 2)
    np.savez(path, inputs=inputs, label=np.arange(count) % 2, **more)  # type: ignore[arg-type]
    return path


def pool(path: Path, names: ColumnNames = NAMES) -> Pool:
    return gather(locate(str(path), names, None, {}))


def located(path: Path, names: ColumnNames | None = None) -> list[Located]:
    return locate(str(path), names or ColumnNames(), None, {})


def load(path: Path | str, **settings: Any) -> Data:
    return Files(str(path), **settings).load(None)
