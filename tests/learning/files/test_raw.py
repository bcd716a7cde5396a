"""Raw tables: files, folders with splits, folders of Hugging Face, and what cannot be read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.files.raw import is_raw_table, read_raw


def test_semicolons_and_byte_order_marks(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("\ufeffage;dose;y\n1;2,5;a\n3;;b\n", encoding="utf-8")
    raw = read_raw(tmp_path / "v.csv")
    assert raw.table.column_names == ["age", "dose", "y"]
    assert raw.table.column("dose").to_pylist() == ["2,5", None]
    assert raw.splits is None


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for name, content in (("a.parquet", b"PAR1"), ("b.csv", b"\n"), ("c.csv", b"a,b\n1\n")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=rf"{name}: .*damaged, truncated or of another format"):
            read_raw(tmp_path / name)
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(DataError, match=r"empty.csv: the file is empty \(0 bytes\)"):
        read_raw(tmp_path / "empty.csv")
    (tmp_path / "d.csv").write_text("a,b\n")
    with pytest.raises(DataError, match="header but no rows"):
        read_raw(tmp_path / "d.csv")
    (tmp_path / "e.csv").write_text("a,a\n1,2\n")
    with pytest.raises(DataError, match="occur twice, such as 'a'"):
        read_raw(tmp_path / "e.csv")


def test_tables_named_like_splits_are_one_table(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("a,y\n1,x\n2,y\n")
    (tmp_path / "valid.csv").write_text("y,a\nx,3.5\n")
    (tmp_path / "testing.csv").write_text("a,y,extra\n4,y,0\n")
    assert is_raw_table(tmp_path, "y", None)
    raw = read_raw(tmp_path)
    by_row = dict(zip(raw.table.column("a").to_pylist(), raw.splits.tolist(), strict=True))  # type: ignore[union-attr]
    assert by_row == {1.0: "train", 2.0: "train", 3.5: "validation", 4.0: "test"}
    assert raw.table.column_names == ["a", "y"]
    (tmp_path / "testing.csv").write_text("a\n4\n")
    with pytest.raises(DataError, match="the test split has no column 'y', which the train split has"):
        read_raw(tmp_path)


def test_lists_and_images_need_no_preparation(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"x": [[1.0, 2.0]], "y": [0]}), tmp_path / "train.parquet")
    assert not is_raw_table(tmp_path / "train.parquet", "y", None)
    assert not is_raw_table(tmp_path, "y", None)
    assert is_raw_table(tmp_path / "train.parquet", "other", None)
    assert not is_raw_table(tmp_path / "a.npz", "y", None)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_splits_that_hugging_face_saved(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    part = datasets.Dataset.from_dict({"text": ["good", "bad"], "label": [1, 0]})
    parts = {"train": part, "test": part.select([0]), "unsupervised": part}
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "saved")
    assert is_raw_table(tmp_path / "saved", "label", None)
    raw = read_raw(tmp_path / "saved")
    assert raw.table.column("text").to_pylist() == ["good", "bad", "good"]
    assert raw.splits is not None
    assert raw.splits.tolist() == ["train", "train", "test"]
    assert raw.left_out == ("unsupervised",)
    datasets.DatasetDict({"a": part, "test": part}).save_to_disk(tmp_path / "odd")
    with pytest.raises(DataError, match="no train split among a, test"):
        read_raw(tmp_path / "odd")
