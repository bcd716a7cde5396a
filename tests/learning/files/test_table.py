"""CSV, Parquet and saved Hugging Face tables by named columns."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.files.source import ColumnNames
from fedreuse.learning.files.table import TableSource, saved_splits, table_of
from tests.learning.files.written import COLUMNS, NAMES, table, write


def source(path: Path, names: ColumnNames = NAMES) -> TableSource:
    return table_of([path], names, None)


@pytest.mark.parametrize("name", ["visits.csv", "visits.parquet"])
def test_columns_are_read_by_name(tmp_path: Path, name: str) -> None:
    read = source(write(tmp_path / name, table()))
    facts = read.facts()
    assert facts.labels.values[facts.labels.codes].tolist() == COLUMNS["label"]
    assert facts.clients is not None
    assert facts.clients.values.tolist() == ["a", "b"]
    assert facts.times is not None
    assert facts.times.tolist() == COLUMNS["day"]
    inputs = np.concatenate(list(read.chunks()))
    assert read.form() == ((2,), inputs.dtype)
    assert inputs.tolist() == [[age, dose] for age, dose in zip(COLUMNS["age"], COLUMNS["dose"], strict=True)]
    assert read.input_name(1) == "column 'dose'"


def test_by_default_every_other_column_is_an_input(tmp_path: Path) -> None:
    read = source(write(tmp_path / "v.parquet", table()), ColumnNames(client="site", time="day"))
    assert read.input_names == ("age", "dose")


def test_several_files_are_one_table(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{number}.parquet", table().slice(5 * number, 5)) for number in range(2)]
    read = table_of(paths, NAMES, None)
    assert len(read.facts().labels) == 10
    assert np.concatenate(list(read.chunks()))[:, 0].tolist() == COLUMNS["age"]
    write(paths[1], table().drop_columns(["day"]))
    with pytest.raises(DataError, match=r"1\.parquet: its columns are not those of .*0\.parquet"):
        table_of(paths, NAMES, None)


@pytest.mark.parametrize(
    ("changes", "names", "message"),
    [
        ({}, ColumnNames(("aeg",)), r"there is no column 'aeg' .*; did you mean 'age'\?"),
        ({}, ColumnNames(("age",), "outcome"), r"there is no column 'outcome' .*; known: age, day"),
        ({}, ColumnNames(("site",)), r"column 'site' holds string, but inputs are numbers"),
        ({"day": ["x"] * 10}, NAMES, r"column 'day' holds string, but times are numbers, dates or timestamps"),
        ({"day": [None] + [1] * 9}, NAMES, r"row 0 has no time in column 'day'"),
        ({"site": [[1]] * 10}, NAMES, r"column 'site' holds list.*, but labels, clients and splits are"),
    ],
)
def test_wrong_columns(tmp_path: Path, changes: dict[str, object], names: ColumnNames, message: str) -> None:
    read = source(write(tmp_path / "v.parquet", table(**changes)), names)
    with pytest.raises(DataError, match=message):
        list(read.chunks()) and read.facts()


def test_a_parquet_file_cut_short_and_a_csv_that_is_none(tmp_path: Path) -> None:
    path = write(tmp_path / "v.parquet", table())
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"v\.parquet: .*damaged, truncated or of another format"):
        source(path)
    (tmp_path / "v.csv").write_text("a,b\n1\n")
    with pytest.raises(DataError, match=r"v\.csv: .*damaged, truncated or of another format"):
        source(tmp_path / "v.csv")


def test_damage_in_the_middle_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "v.parquet", table())
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"v\.parquet: .*damaged or truncated"):
        list(source(path).chunks())


def test_missing_labels_dates_and_codes(tmp_path: Path) -> None:
    dates = pa.array([0, 86_400] * 5, pa.timestamp("s"))
    changes = {
        "label": [None, *COLUMNS["label"][1:]],
        "day": dates,
        "site": pa.array(["b", "a"] * 5).dictionary_encode(),
    }
    facts = source(write(tmp_path / "v.parquet", table(**changes))).facts()
    assert facts.labels.codes.tolist() == [-1, 1, 0, 1, 0, 1, 0, 1, 0, 1]
    assert facts.times is not None
    assert np.diff(facts.times[:2]).item() > 0
    assert facts.clients is not None
    assert facts.clients.codes.tolist() == [1, 0] * 5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_saved_dataset_and_its_splits(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    whole = datasets.Dataset.from_dict(COLUMNS)
    whole.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"train": whole, "test": whole.select([3, 1])}).save_to_disk(tmp_path / "two")
    one = saved_splits(tmp_path / "one", NAMES, None)
    assert list(one) == [""]
    assert np.concatenate(list(one[""].chunks()))[:, 0].tolist() == COLUMNS["age"]
    two = saved_splits(tmp_path / "two", NAMES, None)
    assert np.concatenate(list(two["test"].chunks()))[:, 0].tolist() == [63, 41]
    assert two["test"].facts().labels.codes.tolist() == [0, 0]
    (tmp_path / "one" / "state.json").write_text("{}")
    with pytest.raises(DataError, match=r"one: not a complete folder of `save_to_disk`"):
        saved_splits(tmp_path / "one", ColumnNames(), None)


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r"saved by Hugging Face datasets, which is not installed .*fedreuse\[data\]"):
        saved_splits(tmp_path, ColumnNames(), None)


def test_a_header_without_rows_and_columns_without_values(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("age,label\n")
    with pytest.raises(DataError, match=r"v\.csv: .*header but no rows"):
        source(tmp_path / "v.csv", ColumnNames()).facts()
    (tmp_path / "w.csv").write_text("age,note,label\n1,,\n2,,\n")
    with pytest.raises(DataError, match=r"column 'label' is empty in all 2 rows"):
        source(tmp_path / "w.csv", ColumnNames()).facts()
    with pytest.raises(DataError, match=r"column 'note' is empty"):
        source(tmp_path / "w.csv", ColumnNames(("age", "note"))).form()


def test_a_quoted_text_of_many_lines_in_a_csv(tmp_path: Path) -> None:
    # larger than one block of the reader, which is cut at line ends unless values may have newlines
    speech = "\n".join(["So shaken as we are, so wan with care"] * 20)
    (tmp_path / "plays.csv").write_text("role,text\n" + "".join(f'king,"{speech}"\n' for _ in range(3000)))
    names = ColumnNames(("text",), "role")
    assert len(table_of([tmp_path / "plays.csv"], names, None).facts().labels) == 3000
