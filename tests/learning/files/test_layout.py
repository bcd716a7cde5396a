"""Which sources a path stands for."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.allowed import allow
from fedreuse.core.errors import ConfigError, DataError
from fedreuse.learning.files.layout import files_below, locate
from fedreuse.learning.files.source import ColumnNames
from tests.learning.files.test_images import draw
from tests.learning.files.written import arrays, located, table, write


def parts(path: Path) -> list[tuple[str | None, object, str]]:
    return [(one.split, one.client, type(one.source).__name__) for one in located(path)]


def test_one_file_a_folder_of_tables_of_arrays_or_of_images(tmp_path: Path) -> None:
    assert parts(arrays(tmp_path / "a.npz")) == [(None, None, "ArraySource")]
    assert parts(write(tmp_path / "tables/1.parquet", table()).parent) == [(None, None, "TableSource")]
    draw(tmp_path / "images/ant/1.png", 1)
    assert parts(tmp_path / "images") == [(None, None, "ImageFolder")]


def test_splits_by_name(tmp_path: Path) -> None:
    for name in ("train.npz", "val.npz", "test.npz"):
        arrays(tmp_path / name)
    assert sorted(split for split, _, _ in parts(tmp_path) if split) == ["test", "train", "validation"]
    arrays(tmp_path / "valid.npz")
    with pytest.raises(DataError, match=r"both val\.npz and valid\.npz would be the validation split"):
        located(tmp_path)
    draw(tmp_path / "images/train/ant/1.png", 1)
    draw(tmp_path / "images/test/ant/1.png", 1)
    assert [split for split, _, _ in parts(tmp_path / "images")] == ["test", "train"]


def test_one_folder_per_client(tmp_path: Path) -> None:
    for client in ("2", "10"):
        arrays(tmp_path / "clients" / client / "train.npz")
    arrays(tmp_path / "clients/10/test.npz")
    arrays(tmp_path / "test.npz")
    assert {(split, client) for split, client, _ in parts(tmp_path)} == {
        ("train", 2), ("train", 10), ("test", 10), ("test", None),
    }  # fmt: skip
    arrays(tmp_path / "clients/ward/train.npz")
    assert ("train", "ward") in {(split, client) for split, client, _ in parts(tmp_path)}
    assert parts(tmp_path / "clients/10")[0][1] is None  # a node that has its own folder alone


def test_a_torch_dataset_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_pairs.py").write_text("def pairs(count, value=0):\n    return [([1.0], value)] * count\n")
    monkeypatch.syspath_prepend(tmp_path)
    allow(["own_pairs", "nowhere"])
    found = locate("own_pairs:pairs", ColumnNames(), None, {"count": 3, "train": {}, "test": {"value": 1}})
    assert [(one.split, len(one.source.facts().labels)) for one in found] == [("train", 3), ("test", 3)]
    assert files_below("own_pairs:pairs") == []
    with pytest.raises(DataError, match=r"task\.options: own_pairs:pairs cannot be made with .*count"):
        locate("own_pairs:pairs", ColumnNames(), None, {})
    with pytest.raises(ConfigError, match=r"task\.path: cannot import 'nowhere'"):
        locate("nowhere:pairs", ColumnNames(), None, {})


def test_what_cannot_be_read(tmp_path: Path) -> None:
    arrays(tmp_path / "visits.npz")
    with pytest.raises(DataError, match=r"task\.path: .*visit\.npz does not exist; did you mean 'visits\.npz'\?"):
        located(tmp_path / "visit.npz")
    (tmp_path / "a.xlsx").write_text("")
    with pytest.raises(DataError, match=r"a\.xlsx: unknown format '\.xlsx'; readable are \.npz, \.csv"):
        located(tmp_path / "a.xlsx")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="nothing here that can be read"):
        located(tmp_path / "empty")
    arrays(tmp_path / "half/test.npz")
    with pytest.raises(DataError, match="there is test but no train split"):
        located(tmp_path / "half")
    (tmp_path / "hollow/clients").mkdir(parents=True)
    with pytest.raises(DataError, match="holds no client folders"):
        located(tmp_path / "hollow")
