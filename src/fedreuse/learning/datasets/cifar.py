"""CIFAR-10 and CIFAR-100, from the binary files or from the pickled batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.learning.data import Data, Dataset, Split, datasets
from fedreuse.learning.datasets.facts import FACTS
from fedreuse.learning.datasets.folder import Found, load_files
from fedreuse.learning.datasets.readers import read_cifar_binary, read_cifar_python

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Cifar10", "Cifar100"]


@datasets.register("cifar10")
@dataclass(frozen=True)
class Cifar10(Dataset):
    """CIFAR-10: small photographs, 50,000 and 10,000 images of 3 x 32 x 32, 10 classes.

    Args:
        path: The folder with the published files, checked against their digests; null looks where `fedreuse data fetch`
            puts them, and in the places that `fedreuse data check cifar10` lists.

    Example: `task: {name: cifar10}`.
    """

    path: str | None = None

    def load(self, folder: Path | None) -> Data:
        """Read and check the six batches."""
        return load_files("cifar10", self.path, folder, _reader("cifar10", num_label_bytes=1, label_key="labels"))


@datasets.register("cifar100")
@dataclass(frozen=True)
class Cifar100(Dataset):
    """CIFAR-100 with fine labels: small photographs, 50,000 and 10,000 images of 3 x 32 x 32, 100 classes.

    Args:
        path: The folder with the published files, checked against their digests; null looks where `fedreuse data fetch`
            puts them, and in the places that `fedreuse data check cifar100` lists.

    Example: `task: {name: cifar100}`.
    """

    path: str | None = None

    def load(self, folder: Path | None) -> Data:
        """Read and check the two files."""
        return load_files(
            "cifar100", self.path, folder, _reader("cifar100", num_label_bytes=2, label_key="fine_labels")
        )


def _reader(name: str, num_label_bytes: int, label_key: str) -> Callable[[Found], dict[str, Split]]:
    def read_batch(path: Path, examples: int) -> Split:
        if path.suffix == ".bin":
            return read_cifar_binary(path, examples, num_label_bytes)
        return read_cifar_python(path, examples, label_key)

    def read(found: Found) -> dict[str, Split]:
        splits = {}
        for split, files in (("train", found.form.train_inputs), ("test", found.form.test_inputs)):
            examples = FACTS[name].examples[split] // len(files)
            batches = [read_batch(found.paths[file], examples) for file in files]
            splits[split] = Split(
                np.concatenate([batch.inputs for batch in batches]),
                np.concatenate([batch.labels for batch in batches]),
            )
        return splits

    return read
