"""PathMNIST from a small npz."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.core.errors import DataError
from fedreuse.learning.datasets.pathmnist import PathMnist

Shrink = Callable[..., None]


def arrays(**changes: np.ndarray) -> dict[str, Any]:
    """Nine, eighteen and nine images; the red channel of every pixel is 1, green 2, blue 3."""
    made = {}
    for part, count in (("train", 18), ("val", 9), ("test", 9)):
        made[f"{part}_images"] = np.broadcast_to(np.array([1, 2, 3], np.uint8), (count, 28, 28, 3)).copy()
        made[f"{part}_labels"] = (np.arange(count, dtype=np.uint8) % 9)[:, None]
    return made | changes


@pytest.fixture(autouse=True)
def small(shrink: Shrink) -> None:
    shrink("pathmnist", train=18, test=9, validation=9)


def test_three_splits_channels_first(home: Path) -> None:
    np.savez_compressed(home / "pathmnist.npz", **arrays())
    data = PathMnist().load(None)
    assert data.validation is not None
    assert (len(data.train), len(data.validation), len(data.test)) == (18, 9, 9)
    assert data.shape == (3, 28, 28)
    assert [np.unique(data.train.inputs[:, channel]).tolist() for channel in range(3)] == [[1], [2], [3]]
    assert data.train.labels.tolist() == list(range(9)) * 2
    assert data.train.inputs.flags.c_contiguous


def test_the_wrong_resolution(home: Path) -> None:
    np.savez(home / "pathmnist.npz", **arrays(train_images=np.zeros((18, 64, 64, 3), np.uint8)))
    with pytest.raises(DataError, match=r"pathmnist\.npz: train_images is 18 x 64 x 64 x 3 of uint8, expected 18 x 28"):
        PathMnist().load(None)


def test_another_medmnist_dataset_has_other_classes(home: Path) -> None:
    np.savez(home / "pathmnist.npz", **arrays(val_labels=np.full((9, 1), 10, np.uint8)))
    with pytest.raises(DataError, match="validation labels run from 10 to 10, expected 0 to 8"):
        PathMnist().load(None)


def test_a_truncated_archive(home: Path) -> None:
    np.savez(home / "pathmnist.npz", **arrays())
    content = (home / "pathmnist.npz").read_bytes()
    (home / "pathmnist.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"pathmnist\.npz: truncated or damaged.*fedreuse data fetch pathmnist"):
        PathMnist().load(None)


def test_pickled_objects_are_never_loaded(home: Path) -> None:
    np.savez(home / "pathmnist.npz", **arrays(train_labels=np.array([{}] * 18, object)))
    with pytest.raises(DataError, match="truncated or damaged"):
        PathMnist().load(None)


def test_a_missing_part(home: Path) -> None:
    np.savez(home / "pathmnist.npz", **{key: array for key, array in arrays().items() if key != "val_images"})
    with pytest.raises(DataError, match="has no val_images"):
        PathMnist().load(None)
