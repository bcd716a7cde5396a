"""Arrays in memory, or converted once and mapped."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.files.cache import Arrays, New, cache_folder, convert, read_converted


def test_converted_once_and_mapped(tmp_path: Path) -> None:
    def build(new: New) -> Arrays:
        new("whole", (9,), np.dtype(np.int64))  # what is not kept goes
        inputs = new("inputs", (2, 3), np.dtype(np.float32))
        inputs[...] = 7
        return Arrays({"inputs": inputs, "labels": np.arange(2)}, {"num_classes": 2})

    place = tmp_path / "home" / "converted" / "key"
    assert read_converted(place) is None
    for made in (convert(place, build), read_converted(place), convert(place, build)):
        assert made is not None
        assert isinstance(made.arrays["inputs"], np.memmap)
        assert made.arrays["inputs"].tolist() == [[7] * 3] * 2
        assert not made.arrays["inputs"].flags.writeable
        assert made.facts == {"num_classes": 2}
    assert sorted(file.name for file in place.iterdir()) == ["facts.json", "inputs.npy", "labels.npy"]
    assert [folder.name for folder in place.parent.iterdir()] == ["key"]


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail(new: New) -> Arrays:
        new("inputs", (2,), np.dtype(np.int64))
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        convert(tmp_path / "converted/key", fail)
    assert list((tmp_path / "converted").iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "converted").mkdir()
    (tmp_path / "converted/key").write_text("a file in the way")
    with pytest.raises(DataError, match="cannot be written there"):
        convert(tmp_path / "converted/key", lambda new: Arrays({"labels": np.arange(2)}, {}))


def test_another_file_or_setting_is_another_place(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a")
    first = cache_folder(tmp_path, "settings", [file])
    assert cache_folder(tmp_path, "settings", [file]) == first
    assert cache_folder(tmp_path, "others", [file]) != first
    os.utime(file, ns=(1, 1))
    assert cache_folder(tmp_path, "settings", [file]) != first
