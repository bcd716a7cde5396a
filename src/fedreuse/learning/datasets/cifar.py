"""CIFAR-10 and CIFAR-100, from the binary archives; the Python archives hold pickles, which are never read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.learning.data import Data, Dataset, Split, datasets
from fedreuse.learning.datasets.facts import FACTS
from fedreuse.learning.datasets.folder import Found, load_files
from fedreuse.learning.datasets.readers import read_cifar_binary

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Cifar10", "Cifar100"]


@datasets.register("cifar10")
@dataclass(frozen=True)
class Cifar10(Dataset):
    """CIFAR-10: small photographs, 50,000 and 10,000 images of 3 x 32 x 32, 10 classes.

    Args:
        path: The folder with the published binary files, which are verified; null: where `fedreuse data fetch cifar10`
            puts them.

    Example: `task: {name: cifar10}`.
    """

    path: str | None = None

    def load(self, folder: Path | None) -> Data:
        """Read and verify the six files."""
        return load_files("cifar10", self.path, folder, _reader("cifar10", num_label_bytes=1))


@datasets.register("cifar100")
@dataclass(frozen=True)
class Cifar100(Dataset):
    """CIFAR-100 with fine labels: small photographs, 50,000 and 10,000 images of 3 x 32 x 32, 100 classes.

    Args:
        path: The folder with the published binary files, which are verified; null: where `fedreuse data fetch cifar100`
            puts them.

    Example: `task: {name: cifar100}`.
    """

    path: str | None = None

    def load(self, folder: Path | None) -> Data:
        """Read and verify the two files."""
        return load_files("cifar100", self.path, folder, _reader("cifar100", num_label_bytes=2))


def _reader(name: str, num_label_bytes: int) -> Callable[[Found], dict[str, Split]]:
    def read(found: Found) -> dict[str, Split]:
        splits = {}
        for split, files in (("train", found.form.train_inputs), ("test", found.form.test_inputs)):
            examples = FACTS[name].examples[split] // len(files)
            batches = [read_cifar_binary(found.paths[file], examples, num_label_bytes) for file in files]
            splits[split] = Split(
                np.concatenate([batch.inputs for batch in batches]),
                np.concatenate([batch.labels for batch in batches]),
            )
        return splits

    return read
