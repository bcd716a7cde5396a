"""A generated dataset of any size: one Gaussian cloud per class, around centres at a given distance."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, prod, sqrt
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import require
from fedreuse.core.randomness import stream
from fedreuse.learning.data import Data, Dataset, Split, datasets

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Synthetic"]


@datasets.register("synthetic")
@dataclass(frozen=True)
class Synthetic(Dataset):
    """Gaussian clouds: x = centre of its class + standard normal noise; two centres are about `separation` apart.

    Args:
        examples: Number of training examples, not fewer than `classes`.
        test_examples: Number of test examples, not fewer than `classes`.
        classes: Number of classes, at least 2; their sizes differ by at most one example.
        shape: Shape of one input: channels, height, width.
        separation: Distance of two centres in standard deviations of the noise, at least 0; 4 is easy, 1 is hard.
        seed: Seed of centres and noise; independent of the seed of the run.

    Example: `task: {name: synthetic, examples: 2000, classes: 4, shape: [1, 8, 8]}`.
    """

    examples: int = 2000
    test_examples: int = 500
    classes: int = 10
    shape: tuple[int, ...] = (1, 8, 8)
    separation: float = 4.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check that every class can have an example in each split."""
        require(self.classes >= 2, "synthetic.classes must be at least 2", self.classes)
        require(self.examples >= self.classes, "synthetic.examples must be at least classes", self.examples)
        require(
            self.test_examples >= self.classes,
            "synthetic.test_examples must be at least classes",
            self.test_examples,
        )
        require(bool(self.shape) and min(self.shape) >= 1, "synthetic.shape must be positive sizes", self.shape)
        is_distance = isfinite(self.separation) and self.separation >= 0
        require(is_distance, "synthetic.separation must be a distance of 0 or more", self.separation)

    def load(self, folder: Path | None) -> Data:
        """Generate the data; the same fields give the same bytes."""
        del folder  # nothing is read
        centres = self._centres()
        return Data(
            name="synthetic",
            num_classes=self.classes,
            train=self._split("train", self.examples, centres),
            test=self._split("test", self.test_examples, centres),
        )

    def _centres(self) -> np.ndarray:
        """Return random vectors of length separation / sqrt(2): nearly orthogonal, so `separation` apart."""
        directions = stream(self.seed, "synthetic centres").standard_normal((self.classes, prod(self.shape)))
        lengths = np.sqrt(np.square(directions).sum(axis=1, keepdims=True))
        centres: np.ndarray = directions / lengths * (self.separation / sqrt(2))
        return centres.astype(np.float32)

    def _split(self, purpose: str, examples: int, centres: np.ndarray) -> Split:
        rng = stream(self.seed, f"synthetic {purpose}")  # a stream per split: the size of one does not change the other
        labels = rng.permutation(np.arange(examples, dtype=np.int64) % self.classes)
        inputs = rng.standard_normal((examples, prod(self.shape)), dtype=np.float32)
        inputs += centres[labels]
        return Split(inputs.reshape(examples, *self.shape), labels)
