"""All examples of all sources, in one row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.files.pool import TEST, TRAIN, UNDECIDED, VALIDATION
from fedreuse.learning.files.source import ColumnNames
from tests.learning.files.written import arrays, pool, table, write


def test_sources_are_joined_and_rows_named(tmp_path: Path) -> None:
    arrays(tmp_path / "clients/1/train.npz", 3)
    arrays(tmp_path / "clients/2/train.npz", 4)
    arrays(tmp_path / "test.npz", 2)
    found = pool(tmp_path, ColumnNames())
    assert found.counts.tolist() == [3, 4, 2]
    assert found.splits.tolist() == [TRAIN] * 7 + [TEST] * 2
    assert found.clients is not None
    assert found.clients.codes.tolist() == [0] * 3 + [1] * 4 + [-1] * 2
    assert found.row_of(4).endswith("2/train.npz: row 1")
    inputs, digests = np.empty((9, 2), np.float32), np.empty((9, 2), np.uint64)
    assert not found.fill(inputs, digests).any()
    assert inputs[3:7].ravel().tolist() == list(range(8))
    assert (digests[0] != digests[3]).any()  # the same content at another client
    assert len(np.unique(digests, axis=0)) == 9
    alone = pool(arrays(tmp_path / "alone.npz", 2), ColumnNames())
    again = np.empty((2, 2), np.uint64)
    alone.fill(np.empty((2, 2), np.float32), again)
    assert np.array_equal(again, digests[7:])  # of no client, in both files


def test_missing_numbers_are_found_and_named(tmp_path: Path) -> None:
    found = pool(write(tmp_path / "v.csv", table(dose=[1.0, None, *[1.0] * 8])))
    inputs = np.empty((10, 2), np.float32)
    is_missing = found.fill(inputs, None)
    assert np.flatnonzero(is_missing).tolist() == [1]
    assert found.name_missing(1, inputs[1]) == "column 'dose'"


def test_a_split_column(tmp_path: Path) -> None:
    words = ["Train"] * 7 + ["dev", "test", "test"]
    names = ColumnNames(("age",), split="part")
    assert pool(write(tmp_path / "v.csv", table(part=words)), names).splits.tolist() == [TRAIN] * 7 + [
        VALIDATION,
        TEST,
        TEST,
    ]
    with pytest.raises(DataError, match=r"'spare' in task\.split_column is not a split"):
        pool(write(tmp_path / "w.csv", table(part=["spare"] * 10)), names)
    with pytest.raises(DataError, match=r"row 3 names no split"):
        pool(write(tmp_path / "x.parquet", table(part=[*words[:3], None, *words[4:]])), names)
    assert set(pool(tmp_path / "v.csv").splits.tolist()) == {UNDECIDED}


def test_what_does_not_belong_together(tmp_path: Path) -> None:
    arrays(tmp_path / "train.npz")
    np.savez(tmp_path / "test.npz", inputs=np.zeros((2, 3), np.float32), label=np.zeros(2))
    with pytest.raises(DataError, match=r"test\.npz: its inputs are float32 of shape \(3,\)|train\.npz: its"):
        pool(tmp_path, ColumnNames())
    with pytest.raises(DataError, match=r"row 2 names no client in task\.client_column"):
        pool(write(tmp_path / "v.parquet", table(site=["a", "b", None, *["a"] * 7])))
    with pytest.raises(DataError, match="there are no examples"):
        pool(arrays(tmp_path / "none.npz", 0), ColumnNames())


@pytest.mark.parametrize("value", ["inf", "-inf", "1e300"])
def test_infinite_numbers_are_named(tmp_path: Path, value: str) -> None:
    (tmp_path / "v.csv").write_text(f"age,dose,label\n1,2,0\n3,{value},1\n")
    found = pool(tmp_path / "v.csv", ColumnNames())
    with pytest.raises(DataError, match=r"row 1: column 'dose' is -?inf \(infinite"):
        found.fill(np.empty((2, 2), np.float32), None)
