"""Compressed data files may unpack to a bounded size, which the owner of the machine can raise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedreuse.core.errors import ConfigError, DataError
from fedreuse.learning.files import expansion
from fedreuse.learning.files.arrays import ArraySource
from fedreuse.learning.files.expansion import VARIABLE, allowed_bytes
from fedreuse.learning.files.raw import read_raw
from fedreuse.learning.files.source import ColumnNames
from fedreuse.learning.files.table import table_of


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "ALWAYS_ALLOWED", 100_000)
    monkeypatch.delenv(VARIABLE, raising=False)


def npz(folder: Path) -> Path:
    np.savez_compressed(folder / "a.npz", inputs=np.zeros((50_000, 8), np.float32), label=np.zeros(50_000, np.int64))
    return folder / "a.npz"


def parquet(folder: Path) -> Path:
    pq.write_table(pa.table({"x": np.zeros(500_000), "label": np.zeros(500_000, np.int64)}), folder / "a.parquet")
    return folder / "a.parquet"


def texts(folder: Path) -> Path:
    """One long text many times: the file holds it once, and says nothing of its repetition."""
    words = pa.array(["x" * 5_000] * 4_000)
    pq.write_table(pa.table({"x": words, "label": np.zeros(4_000, np.int64)}), folder / "t.parquet")
    return folder / "t.parquet"


def test_small_files_are_always_allowed_and_others_by_ratio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(bytes(10))
    (tmp_path / "b").write_bytes(bytes(5_000))
    assert allowed_bytes([tmp_path / "a"]) == 100_000
    assert allowed_bytes([tmp_path / "a", tmp_path / "b"]) == 501_000
    monkeypatch.setenv(VARIABLE, "1000")
    assert allowed_bytes([tmp_path / "b"]) == 5_000_000


@pytest.mark.parametrize("ratio", ["many", "0", "-1", "inf", "nan"])
def test_a_wrong_ratio_is_refused(monkeypatch: pytest.MonkeyPatch, ratio: str) -> None:
    monkeypatch.setenv(VARIABLE, ratio)
    with pytest.raises(ConfigError, match=f"{VARIABLE} must be a positive number"):
        allowed_bytes([])


def test_bombs_are_refused_with_the_variable_that_allows_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays, table, names = npz(tmp_path), parquet(tmp_path), ColumnNames()
    with pytest.raises(DataError, match=rf"a\.npz, array 'inputs': .* set the environment variable {VARIABLE}"):
        ArraySource(arrays, names).form()
    for read in (lambda: table_of([table], names, None), lambda: read_raw(table)):
        with pytest.raises(DataError, match=rf"a\.parquet: its columns have 8,000,000 bytes.*{VARIABLE}"):
            read()
    monkeypatch.setenv(VARIABLE, "100000")
    assert ArraySource(arrays, names).form()[0] == (8,)
    assert sum(len(chunk) for chunk in table_of([table], names, None).chunks()) == 500_000
    assert len(read_raw(table).table) == 500_000


def test_repeated_texts_are_counted_as_they_are_unpacked(tmp_path: Path) -> None:
    file = texts(tmp_path)
    assert file.stat().st_size < 10_000
    table = table_of([file], ColumnNames(inputs=("x",)), None)
    with pytest.raises(DataError, match=f"t.parquet: its columns have more than .*{VARIABLE}"):
        list(table.batches(["x"]))
