"""Folders that Hugging Face `datasets` saved."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.files.hugging_face import is_saved_dataset, saved_splits
from fedreuse.learning.files.source import ColumnNames
from tests.learning.files.written import COLUMNS, NAMES

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.slow
def test_a_saved_dataset_and_its_splits(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    whole = datasets.Dataset.from_dict(COLUMNS)
    whole.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"train": whole, "test": whole.select([3, 1])}).save_to_disk(tmp_path / "two")
    assert is_saved_dataset(tmp_path / "one")
    assert not is_saved_dataset(tmp_path)
    one = saved_splits(tmp_path / "one", NAMES, None)
    assert list(one) == [""]
    assert np.concatenate(list(one[""].chunks()))[:, 0].tolist() == COLUMNS["age"]
    two = saved_splits(tmp_path / "two", NAMES, None)
    assert np.concatenate(list(two["test"].chunks()))[:, 0].tolist() == [63, 41]
    assert two["test"].facts().labels.codes.tolist() == [0, 0]
    (tmp_path / "one" / "state.json").write_text("{}")
    with pytest.raises(DataError, match=r"one: not a folder that `save_to_disk` has written whole"):
        saved_splits(tmp_path / "one", ColumnNames(), None)


def test_without_the_package_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r"saved by Hugging Face datasets, which is not installed .*fedreuse\[data\]"):
        saved_splits(tmp_path, ColumnNames(), None)
