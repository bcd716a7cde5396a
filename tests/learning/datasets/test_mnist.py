"""The three datasets in idx files, small."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError, DataError
from fedreuse.learning.data import datasets
from fedreuse.learning.datasets.facts import FACTS
from fedreuse.learning.datasets.mnist import EmnistBalanced, FashionMnist, Mnist

EMNIST = ("emnist-balanced-train", "emnist-balanced-test")
Shrink = Callable[..., None]
Write = Callable[..., None]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_mnist_is_read_packed_or_not(home: Path, shrink: Shrink, write_mnist: Write, suffix: str) -> None:
    shrink("mnist", train=20, test=10)
    write_mnist(home / "mnist", suffix=suffix)
    data = Mnist().load(None)
    assert data.train.inputs.shape == (20, 1, 28, 28)
    assert data.train.inputs.dtype == np.uint8
    assert data.train.labels.dtype == np.int64
    assert data.test.labels.tolist() == list(range(10))
    assert data.train.inputs[:, 0, 0, 1].tolist() == list(range(20))
    assert (data.mean, data.std, data.num_classes, data.is_augmented) == ((0.1307,), (0.3081,), 10, False)


def test_emnist_images_are_set_upright(home: Path, shrink: Shrink, write_mnist: Write) -> None:
    shrink("emnist_balanced", train=94, test=47)
    write_mnist(home / "emnist_balanced", 94, 47, prefixes=EMNIST, classes=47)
    data = EmnistBalanced().load(None)
    # stored in row 0, column 1; upright it is row 1, column 0
    assert data.train.inputs[:, 0, 1, 0].tolist() == list(range(94))
    assert not data.train.inputs[:, 0, 0, 1].any()
    assert data.num_classes == 47


def test_the_folder_the_user_already_has(tmp_path: Path, shrink: Shrink, write_mnist: Write) -> None:
    shrink("fashion_mnist", train=20, test=10)
    write_mnist(tmp_path / "mine")
    assert len(FashionMnist(path=str(tmp_path / "mine")).load(None).train) == 20
    parsed = datasets.parse({"name": "fashion_mnist", "path": str(tmp_path / "mine")}, "task")
    assert parsed == FashionMnist(path=str(tmp_path / "mine"))


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'path'"):
        datasets.parse({"name": "mnist", "paht": "x"}, "task")


def test_train_swapped_with_test(home: Path, shrink: Shrink, write_mnist: Write) -> None:
    shrink("mnist", train=20, test=10)
    write_mnist(home / "mnist", train=10, test=20)
    expected = r"train-images-idx3-ubyte: holds 10 x 28 x 28 values, expected 20 x 28 x 28; .*data fetch mnist"
    with pytest.raises(DataError, match=expected):
        Mnist().load(None)


def test_images_swapped_with_labels(home: Path, shrink: Shrink, write_mnist: Write) -> None:
    shrink("mnist", train=20, test=10)
    write_mnist(home / "mnist")
    images, labels = (home / "mnist" / f"train-{kind}-ubyte" for kind in ("images-idx3", "labels-idx1"))
    images.rename(home / "mnist" / "other")
    labels.rename(images)
    (home / "mnist" / "other").rename(labels)
    with pytest.raises(DataError, match="train-images-idx3-ubyte: holds 20 values, expected 20 x 28 x 28"):
        Mnist().load(None)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_truncated_file(home: Path, shrink: Shrink, write_mnist: Write, suffix: str) -> None:
    shrink("mnist", train=20, test=10)
    write_mnist(home / "mnist", suffix=suffix)
    path = home / "mnist" / f"t10k-images-idx3-ubyte{suffix}"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte.*truncated.*expected"):
        Mnist().load(None)


def test_a_foreign_file(home: Path, shrink: Shrink, write_mnist: Write) -> None:
    shrink("mnist", train=20, test=10)
    write_mnist(home / "mnist", suffix=".gz")
    (home / "mnist" / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(b"<html>not found</html>"))
    with pytest.raises(DataError, match=r"train-labels-idx1-ubyte\.gz: begins with 3c68746d, expected an idx file"):
        Mnist().load(None)


def test_labels_of_another_dataset(home: Path, shrink: Shrink, write_mnist: Write) -> None:
    shrink("mnist", train=20, test=10)
    write_mnist(home / "mnist", classes=12)
    with pytest.raises(DataError, match=r"train labels \(read from train-labels.*\) run from 0 to 11, expected 0 to 9"):
        Mnist().load(None)


def test_an_unbalanced_class(home: Path, shrink: Shrink, write_mnist: Write, write_idx: Write) -> None:
    shrink("fashion_mnist", train=20, test=10)
    write_mnist(home / "fashion_mnist")
    write_idx(home / "fashion_mnist" / "t10k-labels-idx1-ubyte", np.array([0, 0, 2, 3, 4, 5, 6, 7, 8, 9]))
    with pytest.raises(DataError, match="have 2 examples of class 0, expected 1"):
        FashionMnist().load(None)


def test_the_published_class_balance() -> None:
    # 2,400 and 400 of each of the 47 classes
    assert FACTS["emnist_balanced"].examples == {"train": 47 * 2400, "test": 47 * 400}
    assert FACTS["emnist_balanced"].is_balanced
