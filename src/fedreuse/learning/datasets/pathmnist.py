"""PathMNIST of the MedMNIST collection, with its published train, validation and test splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.learning.data import Data, Dataset, Split, datasets
from fedreuse.learning.datasets.facts import FACTS
from fedreuse.learning.datasets.folder import Found, load_files
from fedreuse.learning.datasets.readers import read_medmnist

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PathMnist"]

_PARTS = {"train": "train", "test": "test", "validation": "val"}


@datasets.register("pathmnist")
@dataclass(frozen=True)
class PathMnist(Dataset):
    """PathMNIST: microscope images of tissue, 3 x 28 x 28, 9 classes; 89,996 for training, 10,004 and 7,180 held out.

    The 10,004 images are for validation, the 7,180 for testing.

    Args:
        path: Folder with the published files, checked against their digests. Default: the folder that `fedreuse data
            fetch` fills, and the folders that `fedreuse data check pathmnist` lists.

    Example: `task: {name: pathmnist}`.
    """

    path: str | None = None

    def load(self, folder: Path | None) -> Data:
        """Read and check pathmnist.npz."""
        return load_files("pathmnist", self.path, folder, _read)


def _read(found: Found) -> dict[str, Split]:
    facts = FACTS["pathmnist"]
    (path,) = found.paths.values()
    channels, height, width = facts.shape
    return {
        split: read_medmnist(path, part, facts.examples[split], (channels, height, width))
        for split, part in _PARTS.items()
    }
