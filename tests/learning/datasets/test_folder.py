"""Where the data is looked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.datasets.folder import data_home, find
from fedreuse.learning.datasets.mnist import Mnist

Write = Callable[..., None]


def place_of(name: str, path: str | None = None, folder: Path | None = None) -> Path | None:
    found = find(name, path, folder)
    return None if found is None else next(iter(found.paths.values())).parent


def test_the_given_folder_then_the_variable_then_the_cache(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data_home(tmp_path) == tmp_path
    assert data_home() == home
    monkeypatch.setenv("FEDREUSE_DATA", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_home() == tmp_path / ".cache" / "fedreuse"


@pytest.mark.parametrize("below", ["mnist", "mnist/MNIST/raw", "MNIST/raw", "mnist/some", "mnist/some/where"])
def test_layouts_below_the_folder_of_all_datasets(home: Path, write_mnist: Write, below: str) -> None:
    write_mnist(home / below, suffix=".gz")
    assert place_of("mnist") == home / below


@pytest.mark.parametrize("below", [".", "raw", "MNIST/raw", "mnist"])
def test_layouts_below_the_users_own_folder(tmp_path: Path, write_mnist: Write, below: str) -> None:
    write_mnist(tmp_path / "mine" / below)
    assert place_of("mnist", str(tmp_path / "mine")) == tmp_path / "mine" / below


def test_a_folder_of_torchvision_with_several_datasets(tmp_path: Path, write_mnist: Write) -> None:
    write_mnist(tmp_path / "FashionMNIST" / "raw")
    write_mnist(tmp_path / "MNIST" / "raw")
    for path, folder in ((str(tmp_path), None), (None, tmp_path)):
        assert place_of("mnist", path, folder) == tmp_path / "MNIST" / "raw"
        assert place_of("fashion_mnist", path, folder) == tmp_path / "FashionMNIST" / "raw"


def test_files_of_another_dataset_are_not_taken(home: Path, write_mnist: Write) -> None:
    write_mnist(home / "fashion_mnist")
    assert place_of("mnist") is None
    assert place_of("fashion_mnist") == home / "fashion_mnist"


def test_the_unfinished_is_not_taken(tmp_path: Path, write_mnist: Write) -> None:
    write_mnist(tmp_path / ".fetch-mnist" / "ready")
    assert place_of("mnist", str(tmp_path)) is None
    assert place_of("mnist", folder=tmp_path) is None


def test_names_with_a_dot(home: Path, write_mnist: Write) -> None:
    write_mnist(home / "mnist")
    for path in (home / "mnist").iterdir():
        path.rename(path.with_name(path.name.replace("-idx", ".idx")))
    assert place_of("mnist") == home / "mnist"


def test_absence_tells_the_way_out(home: Path) -> None:
    with pytest.raises(DataError) as caught:
        Mnist().load(None)
    told = str(caught.value)
    assert "mnist: not found: train-images-idx3-ubyte" in told
    assert str(home / "mnist") in told
    assert "`fedreuse data fetch mnist`" in told
    assert "FEDREUSE_DATA" in told
    assert "task.path" in told


def test_one_missing_file_is_named(home: Path, write_mnist: Write) -> None:
    write_mnist(home / "MNIST" / "raw")
    (home / "MNIST" / "raw" / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match=f"not found: t10k-labels-idx1-ubyte missing from {home}/MNIST/raw"):
        Mnist().load(None)
