"""Arrays in memory, or converted once and mapped."""

from __future__ import annotations

import json
import os
import stat
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.checked import with_check
from fedreuse.core.errors import DataError
from fedreuse.learning.files.cache import Arrays, New, cache_folder, clear_converted, convert, read_converted


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


def labels_only(_: New) -> Arrays:
    return Arrays({"labels": np.arange(2)}, {})


def test_only_the_owner_can_read(tmp_path: Path) -> None:
    place = tmp_path / "converted/key"
    (tmp_path / "converted").mkdir(mode=0o755)
    convert(place, labels_only)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (place.parent, place, *place.iterdir())}
    assert modes == {"converted": 0o700, "key": 0o700, "labels.npy": 0o600, "facts.json": 0o600}


@pytest.mark.parametrize("name", ["labels.npy", "facts.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "delete", "link"])
def test_damaged_arrays_are_converted_again(tmp_path: Path, name: str, damage: str) -> None:
    place = tmp_path / "converted/key"
    convert(place, labels_only)
    data = (place / name).read_bytes()
    if damage in ("delete", "link"):
        (place / name).rename(tmp_path / "elsewhere")
    if damage == "link" and name != "facts.json":
        (place / name).symlink_to(tmp_path / "elsewhere")
    if damage in ("flip", "cut"):
        (place / name).write_bytes(data[:-1] + (bytes([data[-1] ^ 1]) if damage == "flip" else b""))
    assert read_converted(place) is None
    assert convert(place, labels_only).arrays["labels"].tolist() == [0, 1]


def test_a_name_in_the_facts_does_not_lead_out(tmp_path: Path) -> None:
    place = tmp_path / "converted/key"
    convert(place, labels_only)
    np.save(tmp_path / "secret.npy", np.arange(9))
    content = json.loads((place / "facts.json").read_text())
    digest = sha256((tmp_path / "secret.npy").read_bytes()).hexdigest()
    (place / "facts.json").write_text(json.dumps(with_check({**content, "arrays": {"../../secret": digest}})))
    assert read_converted(place) is None


def test_leftovers_and_old_conversions_are_cleared(tmp_path: Path) -> None:
    home = tmp_path / "converted"
    convert(home / "old", labels_only)
    os.utime(home / "old", (1, 1))
    (home / ".key.999999999.part").mkdir()
    (home / f".key.{os.getppid()}.part").mkdir()  # of a process that runs
    convert(home / "new", labels_only)
    assert sorted(path.name for path in home.iterdir()) == sorted(["new", f".key.{os.getppid()}.part"])
    size = sum(file.stat().st_size for file in (home / "new").iterdir())
    assert clear_converted(home) == size
    assert not (home / "new").exists()
    assert clear_converted(tmp_path / "absent") == 0
