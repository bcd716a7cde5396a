"""The handwritten digits that come with scikit-learn: small, real, and always at hand."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.learning.data import Data, Dataset, Split, datasets
from fedreuse.learning.datasets.facts import FACTS
from fedreuse.learning.datasets.verification import data_of, verify

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Digits"]

_BRIGHTEST = 16  # a pixel is the number of dark dots in a 4 x 4 cell
_TEST_EVERY = 5


@datasets.register("digits")
@dataclass(frozen=True)
class Digits(Dataset):
    """scikit-learn's digits: 1,797 images of 8 x 8, 10 classes; every fifth image of a class is for testing.

    The images come with scikit-learn: nothing is downloaded.

    Example: `task: {name: digits, clients: 30}`.
    """

    def load(self, folder: Path | None) -> Data:
        """Read the digits from the installed scikit-learn and split them, always the same way."""
        del folder  # the images come with scikit-learn
        pixels, labels = _bundled()
        images = np.round(pixels * (255 / _BRIGHTEST)).astype(np.uint8)[:, None]
        is_test = _every_fifth_of_each_class(labels)
        splits = {
            "train": Split(images[~is_test], labels[~is_test]),
            "test": Split(images[is_test], labels[is_test]),
        }
        data = data_of("digits", splits)
        try:
            verify(data, FACTS["digits"])
        except DataError as error:
            raise DataError(f"digits: in the installed scikit-learn: {error}; reinstall scikit-learn") from None
        return data


def _bundled() -> tuple[np.ndarray, np.ndarray]:
    # read the file itself: importing scikit-learn takes two seconds
    spec = find_spec("sklearn")
    folder = Path(spec.origin).parent if spec is not None and spec.origin is not None else None
    path = None if folder is None else folder / "datasets" / "data" / "digits.csv.gz"
    if path is None or not path.exists():
        raise DataError("digits: the images ship with scikit-learn, which is not installed; pip install scikit-learn")
    with gzip.open(path, "rt") as file:
        rows = np.loadtxt(file, delimiter=",")
    return rows[:, :-1].reshape(-1, 8, 8), rows[:, -1].astype(np.int64)


def _every_fifth_of_each_class(labels: np.ndarray) -> np.ndarray:
    """Select a stratified test split without a draw, so that no version of a random generator can change it."""
    is_test = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        is_test[np.flatnonzero(labels == label)[_TEST_EVERY - 1 :: _TEST_EVERY]] = True
    return is_test
