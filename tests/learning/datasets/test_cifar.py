"""CIFAR in binary files, small; the published pickles are refused unread."""

from __future__ import annotations

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


def write_cifar10(folder: Path) -> None:
    """Six batches of ten images, one of each class."""
    folder.mkdir(parents=True)
    for name in BATCHES_10:
        pixels, labels = images(10, name), np.arange(10, dtype=np.uint8)
        (folder / f"{name}.bin").write_bytes(np.hstack([labels[:, None], pixels]).tobytes())


def write_cifar100(folder: Path) -> None:
    """Two images of each fine class for training and one for testing; the coarse label is always 7."""
    folder.mkdir(parents=True)
    for name, count in (("train", 200), ("test", 100)):
        pixels, fine = images(count, name), (np.arange(count) % 100).astype(np.uint8)
        coarse = np.full((count, 1), 7, np.uint8)
        (folder / f"{name}.bin").write_bytes(np.hstack([coarse, fine[:, None], pixels]).tobytes())


def test_cifar10(home: Path, shrink: Shrink) -> None:
    shrink("cifar10", train=50, test=10)
    write_cifar10(home / "cifar-10-batches-bin")
    data = Cifar10().load(None)
    assert data.train.inputs.shape == (50, 3, 32, 32)
    np.testing.assert_array_equal(data.train.inputs[10:20].reshape(10, -1), images(10, "data_batch_2"))
    np.testing.assert_array_equal(data.test.inputs.reshape(10, -1), images(10, "test_batch"))
    assert data.train.labels.tolist() == list(range(10)) * 5
    assert data.is_augmented


def test_cifar100_fine_labels_are_taken(home: Path, shrink: Shrink) -> None:
    shrink("cifar100", train=200, test=100)
    write_cifar100(home / "cifar100" / "cifar-100-binary")
    data = Cifar100().load(None)
    assert data.train.labels.tolist() == list(range(100)) * 2
    np.testing.assert_array_equal(data.train.inputs.reshape(200, -1), images(200, "train"))
    assert (data.num_classes, data.is_augmented) == (100, True)


def test_cifar100_in_another_order_is_other_data(tmp_path: Path, shrink: Shrink) -> None:
    shrink("cifar100", train=200, test=100)
    write_cifar100(tmp_path / "one")
    write_cifar100(tmp_path / "other")
    train = tmp_path / "other" / "train.bin"
    train.write_bytes(np.frombuffer(train.read_bytes(), np.uint8).reshape(200, -1)[::-1].tobytes())
    one, other = (Cifar100(str(tmp_path / name)).load(None) for name in ("one", "other"))
    assert sorted(one.train.labels.tolist()) == sorted(other.train.labels.tolist())
    assert one.digest != other.digest


def test_a_partly_missing_archive_is_named(tmp_path: Path, shrink: Shrink) -> None:
    shrink("cifar100", train=200, test=100)
    write_cifar100(tmp_path / "mine")
    (tmp_path / "mine" / "test.bin").unlink()
    with pytest.raises(DataError, match=r"cifar100: not found: test\.bin missing from .*mine; get it with"):
        Cifar100(str(tmp_path / "mine")).load(None)


@pytest.mark.parametrize(
    ("dataset", "layout", "files"),
    [
        (Cifar10(), "cifar-10-batches-py", BATCHES_10),
        (Cifar100(), "cifar100/cifar-100-python", ["train", "test"]),
    ],
)
def test_pickles_are_refused_unread(home: Path, dataset: Cifar10 | Cifar100, layout: str, files: list[str]) -> None:
    (home / layout).mkdir(parents=True)
    for name in files:
        (home / layout / name).write_bytes(b"\x80\x02cos\nsystem\nU\x04echo\x85R.")
    with pytest.raises(DataError, match=rf"{layout} holds pickles.*cifar-100?-binary\.tar\.gz.*data fetch cifar100?"):
        dataset.load(None)


def test_a_truncated_binary_batch(home: Path, shrink: Shrink) -> None:
    shrink("cifar10", train=50, test=10)
    write_cifar10(home / "cifar10")
    path = home / "cifar10" / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"data_batch_3\.bin: 30729 bytes found, expected 30730 .*fetch cifar10"):
        Cifar10().load(None)


def test_train_swapped_with_test(home: Path, shrink: Shrink) -> None:
    shrink("cifar100", train=200, test=100)
    folder = home / "cifar100"
    write_cifar100(folder)
    (folder / "train.bin").rename(folder / "other")
    (folder / "test.bin").rename(folder / "train.bin")
    (folder / "other").rename(folder / "test.bin")
    with pytest.raises(DataError, match=r"train\.bin: 307400 bytes found, expected 614800"):
        Cifar100().load(None)


def test_a_label_out_of_range(home: Path, shrink: Shrink) -> None:
    shrink("cifar10", train=50, test=10)
    write_cifar10(home / "cifar10")
    path = home / "cifar10" / "test_batch.bin"
    path.write_bytes(b"\x0a" + path.read_bytes()[1:])
    with pytest.raises(DataError, match=r"test labels \(read from test_batch\.bin\) run from 1 to 10, expected 0 to 9"):
        Cifar10().load(None)
