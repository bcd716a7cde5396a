"""Preparation of a raw table: rows, labels, clients, the test split, and the record of decisions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.files.preparation import PREPARATION_FILE, TABLE_FILE, Prepared, prepare_table
from fedreuse.learning.task import parse_task


def visits(path: Path, rows: int = 120, **changes: Any) -> Path:
    """A table of visits in three hospitals; changes are columns, or None for none."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {
        "age": rng.normal(60, 10, rows).tolist(),
        "ward": ["icu", "other"] * (rows // 2),
        "hospital": ["north", "east", "west"] * (rows // 3),
        "outcome": ["ill", "well", "well", "ill"] * (rows // 4),
    }
    columns |= changes
    pa.parquet.write_table(pa.table({name: values for name, values in columns.items() if values is not None}), path)
    return path


def prepared(tmp_path: Path, **changes: Any) -> Prepared:
    return prepare_table(visits(tmp_path / "v.parquet", **changes), tmp_path / "out", "outcome", "hospital")


def test_the_task_reads_the_prepared_table(tmp_path: Path) -> None:
    found = prepared(tmp_path)
    assert (found.labels, found.num_inputs, found.num_classes) == ("classes", 3, 2)
    assert found.rows == {"east": 40, "north": 40, "west": 40}
    task = parse_task(found.task, "task")
    assert task.clients == 3
    ready = task.prepare(1)
    assert len(ready.test) == 24
    assert ready.data.shape == (3,)
    record = json.loads((tmp_path / "out" / PREPARATION_FILE).read_text())
    assert record["task"] == found.task
    assert record["inputs"] == ["age", "ward=icu", "ward=other"]
    assert (record["rows_read"], record["rows"], record["test_rows"]) == (120, 120, 24)
    assert [entry["column"] for entry in record["decisions"]] == ["ward"]
    assert len(record["source_sha256"]) == 64


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_saved_table_of_hugging_face_is_prepared_as_the_file_is(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    from_file = prepared(tmp_path)
    datasets.Dataset(pa.parquet.read_table(tmp_path / "v.parquet")).save_to_disk(tmp_path / "saved")
    found = prepare_table(tmp_path / "saved", tmp_path / "other", "outcome", "hospital")
    assert found.decisions == from_file.decisions
    assert (tmp_path / "other" / TABLE_FILE).read_bytes() == (tmp_path / "out" / TABLE_FILE).read_bytes()
    assert len(found.facts["source_sha256"]) == 64


def test_it_is_the_same_each_time(tmp_path: Path) -> None:
    prepared(tmp_path)
    first = (tmp_path / "out" / TABLE_FILE).read_bytes()
    prepared(tmp_path)
    assert (tmp_path / "out" / TABLE_FILE).read_bytes() == first


def test_rows_without_label_or_client_and_small_clients_are_dropped(tmp_path: Path) -> None:
    outcome: list[Any] = ["ill", "well", "well", "ill"] * 30
    hospital: list[Any] = ["north", "east", "west"] * 40
    outcome[0], hospital[1], hospital[2] = None, None, "tiny"
    found = prepared(tmp_path, outcome=outcome, hospital=hospital)
    assert list(found.rows) == ["east", "north", "west"]
    assert sum(found.rows.values()) == 117
    problems = " ".join(map(str, found.decisions))
    for text in ("1 of 120 rows have no label", "1 rows have no client", "(tiny)"):
        assert text in problems


def test_numbers_to_predict_are_scaled_by_the_training_rows(tmp_path: Path) -> None:
    found = prepared(tmp_path, outcome=np.linspace(1000, 9000, 120).tolist())
    assert found.labels == "numbers"
    assert found.task["labels"] == "numbers"
    table = pa.parquet.read_table(tmp_path / "out" / TABLE_FILE)
    is_training = np.array(table.column("split").to_pylist()) == "train"
    values = table.column("outcome").to_numpy()[is_training]
    assert values.mean() == pytest.approx(0, abs=1e-9)
    assert values.std() == pytest.approx(1)
    assert parse_task({**found.task, "loss": "squared_error", "metric": "r2"}, "task").prepare(1).data.kind == "numbers"


def test_few_whole_numbers_are_classes_unless_numbers_are_wanted(tmp_path: Path) -> None:
    path = visits(tmp_path / "v.parquet", outcome=[0, 1, 2, 3] * 30)
    assert prepare_table(path, tmp_path / "a", "outcome", "hospital").task["classes"] == ["0", "1", "2", "3"]
    assert prepare_table(path, tmp_path / "b", "outcome", "hospital", "numbers").labels == "numbers"


def test_no_test_row_is_a_copy_of_a_training_row(tmp_path: Path) -> None:
    ages = np.random.default_rng(1).normal(60, 10, 120)
    ages[60:72] = ages[:12]  # twelve copies of rows of the same client and label
    found = prepared(tmp_path, age=ages.tolist(), outcome=["ill", "well"] * 60)
    parse_task(found.task, "task").prepare(1)  # `duplicates: refuse` would raise
    assert "duplicates" not in found.task
    coarse = prepared(tmp_path, age=[1.0, 2.0, 3.0] * 40)
    assert coarse.task["duplicates"] == "keep"
    assert "independent examples" in str(coarse.decisions[-1])
    parse_task(coarse.task, "task").prepare(1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"outcome": ["ill"] * 120}, "all labels in column 'outcome' are 'ill'"),
        ({"outcome": [f"case {number}" for number in range(120)]}, "120 different values .* identifier or free text"),
        ({"outcome": [None] * 120}, "'outcome' is empty in all 120 rows"),
        ({"hospital": ["north"] * 120}, "'hospital' has 1 different values, and one client"),
        ({"hospital": list(range(120))}, "no client with at least 5 rows"),
        ({"hospital": [None] * 120}, "'hospital' is empty in all 120 rows"),
        ({"outcome": None, "outcom": ["ill", "well"] * 60}, "no label column 'outcome'; did you mean 'outcom'"),
        ({"hospital": None}, "no client column 'hospital'"),
        ({"age": None, "ward": ["icu"] * 120}, r"no column is left as an input: .*constant \('icu'\)"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        prepared(tmp_path, **changes)
    assert not (tmp_path / "out").exists()


def test_label_and_client_are_two_columns(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="both the label and the client"):
        prepare_table(visits(tmp_path / "v.parquet"), tmp_path / "out", "ward", "ward")


def in_splits(folder: Path, **rows: slice) -> Path:
    """The table of visits as one CSV file per split."""
    whole = pa.parquet.read_table(visits(folder.parent / "whole.parquet"))
    folder.mkdir()
    for name, part in rows.items():
        pa.csv.write_csv(whole.take(pa.array(np.arange(120)[part])), folder / f"{name}.csv")
    return folder


def test_given_splits_are_kept_and_statistics_are_those_of_training_rows(tmp_path: Path) -> None:
    source = in_splits(tmp_path / "v", train=slice(0, 90), validation=slice(90, 105), test=slice(105, 120))
    rows = (source / "test.csv").read_text().replace("other", "new ward")
    (source / "test.csv").write_text(rows)
    found = prepare_table(source, tmp_path / "out", "outcome", "hospital")
    split = pa.parquet.read_table(tmp_path / "out" / TABLE_FILE).column("split").to_pylist()
    assert split == ["train"] * 90 + ["validation"] * 15 + ["test"] * 15
    assert found.facts["test_rows"] == 15
    assert found.facts["splits"] == "given"
    assert "all are 0 in 8 test rows with another value" in str(found.decisions[0])
    ready = parse_task(found.task, "task").prepare(1)
    assert (len(ready.training.indices), len(ready.test)) == (90, 15)
    assert ready.official_validation is not None
    assert len(ready.official_validation.labels) == 15


def test_a_test_split_is_drawn_where_none_is_given(tmp_path: Path) -> None:
    source = in_splits(tmp_path / "v", train=slice(0, 90), dev=slice(90, 120))
    found = prepare_table(source, tmp_path / "out", "outcome", "hospital")
    split = np.array(pa.parquet.read_table(tmp_path / "out" / TABLE_FILE).column("split").to_pylist())
    assert np.count_nonzero(split[:90] == "test") == 18  # a fifth of each client's 30 rows
    assert (split[90:] == "validation").all()
    assert found.facts["test_share"] == 0.2


def test_copies_across_given_splits_move_to_the_earlier_split(tmp_path: Path) -> None:
    source = in_splits(tmp_path / "v", train=slice(0, 60), validation=slice(54, 90), test=slice(87, 120))
    found = prepare_table(source, tmp_path / "out", "outcome", "hospital")
    split = pa.parquet.read_table(tmp_path / "out" / TABLE_FILE).column("split").to_pylist()
    assert split == ["train"] * 66 + ["validation"] * 33 + ["test"] * 30
    assert str(found.decisions[-1]).startswith("9 test or validation rows are exact copies")
    parse_task(found.task, "task").prepare(1)  # `duplicates: refuse` would raise


def test_clients_without_rows_for_training_are_dropped(tmp_path: Path) -> None:
    source = in_splits(tmp_path / "v", train=slice(0, 90), test=slice(90, 120))
    text = (source / "train.csv").read_text()
    (source / "train.csv").write_text(text.replace("west", "north"))
    found = prepare_table(source, tmp_path / "out", "outcome", "hospital")
    assert list(found.rows) == ["east", "north"]
    assert "1 clients have fewer than 5 rows (west)" in " ".join(map(str, found.decisions))
