"""MNIST and its two relatives in idx files: Fashion-MNIST and the balanced EMNIST."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.learning.data import Data, Dataset, Split, datasets
from fedreuse.learning.datasets.facts import FACTS
from fedreuse.learning.datasets.folder import Found, load_files
from fedreuse.learning.datasets.readers import read_idx

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["EmnistBalanced", "FashionMnist", "Mnist"]


@datasets.register("mnist")
@dataclass(frozen=True)
class Mnist(Dataset):
    """MNIST: handwritten digits, 60,000 and 10,000 images of 28 x 28, 10 classes.

    Args:
        path: The folder with the published files, which are verified; null: where `fedreuse data fetch mnist`
            puts them.

    Example: `task: {name: mnist}`.
    """

    path: str | None = None

    def load(self, folder: Path | None) -> Data:
        """Read and verify the four idx files."""
        return load_files("mnist", self.path, folder, _reader("mnist"))


@datasets.register("fashion_mnist")
@dataclass(frozen=True)
class FashionMnist(Dataset):
    """Fashion-MNIST: pieces of clothing, 60,000 and 10,000 images of 28 x 28, 10 classes.

    Args:
        path: The folder with the published files, which are verified; null: where `fedreuse data fetch fashion_mnist`
            puts them.

    Example: `task: {name: fashion_mnist}`.
    """

    path: str | None = None

    def load(self, folder: Path | None) -> Data:
        """Read and verify the four idx files."""
        return load_files("fashion_mnist", self.path, folder, _reader("fashion_mnist"))


@datasets.register("emnist_balanced")
@dataclass(frozen=True)
class EmnistBalanced(Dataset):
    """EMNIST balanced: handwritten letters and digits, 112,800 and 18,800 images of 28 x 28, 47 classes.

    Args:
        path: The folder with the published files, which are verified; null: where `fedreuse data fetch emnist_balanced`
            puts them.

    Example: `task: {name: emnist_balanced}`.
    """

    path: str | None = None

    def load(self, folder: Path | None) -> Data:
        """Read and verify the four idx files, and set the images upright."""
        return load_files("emnist_balanced", self.path, folder, _reader("emnist_balanced", is_transposed=True))


def _reader(name: str, is_transposed: bool = False) -> Callable[[Found], dict[str, Split]]:
    """`is_transposed`: NIST wrote EMNIST by columns, so that as stored the letters lie down, mirrored."""

    def read(found: Found) -> dict[str, Split]:
        facts, form = FACTS[name], found.form
        splits = {}
        for split, images_file, labels_file in (
            ("train", form.train_inputs[0], form.train_labels[0]),
            ("test", form.test_inputs[0], form.test_labels[0]),
        ):
            count = facts.examples[split]
            images = read_idx(found.paths[images_file], (count, *facts.shape[1:]))
            labels = read_idx(found.paths[labels_file], (count,))
            upright = np.ascontiguousarray(images.transpose(0, 2, 1)) if is_transposed else images
            splits[split] = Split(upright[:, None], labels.astype(np.int64))
        return splits

    return read
