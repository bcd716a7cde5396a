"""CIFAR in both published forms, small."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.core.randomness import stream
from fedreuse.learning.datasets.cifar import Cifar10, Cifar100

Shrink = Callable[..., None]
BATCHES_10 = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]


def images(count: int, purpose: str) -> np.ndarray:
    return stream(0, purpose).integers(0, 256, (count, 3072), dtype=np.uint8)


def write_cifar10(folder: Path, is_binary: bool) -> None:
    """Six batches of ten images, one of each class."""
    folder.mkdir(parents=True)
    for name in BATCHES_10:
        pixels, labels = images(10, name), np.arange(10, dtype=np.uint8)
        if is_binary:
            (folder / f"{name}.bin").write_bytes(np.hstack([labels[:, None], pixels]).tobytes())
        else:
            batch = {b"data": pixels, b"labels": labels.tolist(), b"batch_label": b"some"}
            (folder / name).write_bytes(pickle.dumps(batch, 2))


def write_cifar100(folder: Path, is_binary: bool) -> None:
    """Two images of each fine class for training and one for testing; the coarse label is always 7."""
    folder.mkdir(parents=True)
    for name, count in (("train", 200), ("test", 100)):
        pixels, fine = images(count, name), (np.arange(count) % 100).astype(np.uint8)
        if is_binary:
            coarse = np.full((count, 1), 7, np.uint8)
            (folder / f"{name}.bin").write_bytes(np.hstack([coarse, fine[:, None], pixels]).tobytes())
        else:
            batch = {b"data": pixels, b"fine_labels": fine.tolist(), b"coarse_labels": [7] * count}
            (folder / name).write_bytes(pickle.dumps(batch, 2))


@pytest.mark.parametrize(("layout", "is_binary"), [("cifar-10-batches-bin", True), ("cifar-10-batches-py", False)])
def test_cifar10_both_forms_give_the_same_arrays(home: Path, shrink: Shrink, layout: str, is_binary: bool) -> None:
    shrink("cifar10", train=50, test=10)
    write_cifar10(home / layout, is_binary)
    data = Cifar10().load(None)
    assert data.train.inputs.shape == (50, 3, 32, 32)
    np.testing.assert_array_equal(data.train.inputs[10:20].reshape(10, -1), images(10, "data_batch_2"))
    np.testing.assert_array_equal(data.test.inputs.reshape(10, -1), images(10, "test_batch"))
    assert data.train.labels.tolist() == list(range(10)) * 5
    assert data.is_augmented


@pytest.mark.parametrize(("layout", "is_binary"), [("cifar-100-binary", True), ("cifar-100-python", False)])
def test_cifar100_fine_labels_are_taken(home: Path, shrink: Shrink, layout: str, is_binary: bool) -> None:
    shrink("cifar100", train=200, test=100)
    write_cifar100(home / "cifar100" / layout, is_binary)
    data = Cifar100().load(None)
    assert data.train.labels.tolist() == list(range(100)) * 2
    np.testing.assert_array_equal(data.train.inputs.reshape(200, -1), images(200, "train"))
    assert (data.num_classes, data.is_augmented) == (100, True)


def test_a_truncated_binary_batch(home: Path, shrink: Shrink) -> None:
    shrink("cifar10", train=50, test=10)
    write_cifar10(home / "cifar10", is_binary=True)
    path = home / "cifar10" / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"data_batch_3\.bin: 30729 bytes found, expected 30730 .*fetch cifar10"):
        Cifar10().load(None)


def test_train_swapped_with_test(home: Path, shrink: Shrink) -> None:
    shrink("cifar100", train=200, test=100)
    folder = home / "cifar100"
    write_cifar100(folder, is_binary=False)
    (folder / "train").rename(folder / "other")
    (folder / "test").rename(folder / "train")
    (folder / "other").rename(folder / "test")
    with pytest.raises(DataError, match="train: holds 100 x 3072 pixels and 100 labels, expected 200 x 3072"):
        Cifar100().load(None)


def test_cifar10_batches_under_the_name_of_cifar100(home: Path, shrink: Shrink) -> None:
    shrink("cifar100", train=10, test=10)
    write_cifar10(home / "other", is_binary=False)
    (home / "cifar100").mkdir()
    (home / "other" / "data_batch_1").rename(home / "cifar100" / "train")
    (home / "other" / "test_batch").rename(home / "cifar100" / "test")
    with pytest.raises(DataError, match="train: holds batch_label, data, labels, expected data and fine_labels"):
        Cifar100().load(None)


def test_a_hostile_batch(home: Path, shrink: Shrink) -> None:
    shrink("cifar10", train=50, test=10)
    write_cifar10(home / "cifar10", is_binary=False)
    (home / "cifar10" / "data_batch_1").write_bytes(b"\x80\x02cos\nsystem\nU\x04echo\x85R.")
    with pytest.raises(DataError, match=r"data_batch_1: not a CIFAR batch: it names 'os\.system'"):
        Cifar10().load(None)


def test_a_label_out_of_range(home: Path, shrink: Shrink) -> None:
    shrink("cifar10", train=50, test=10)
    write_cifar10(home / "cifar10", is_binary=True)
    path = home / "cifar10" / "test_batch.bin"
    path.write_bytes(b"\x0a" + path.read_bytes()[1:])
    with pytest.raises(DataError, match=r"test labels \(read from test_batch\.bin\) run from 1 to 10, expected 0 to 9"):
        Cifar10().load(None)
