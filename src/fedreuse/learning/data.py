"""What a dataset is once it is in memory: splits of examples, how to normalise them, how to augment them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.core.registry import Registry

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Data", "Dataset", "Split", "datasets", "digest_of"]


@dataclass(frozen=True)
class Split:
    """Examples: inputs (images uint8 as N x C x H x W, or float32 of any shape) and integer labels."""

    inputs: np.ndarray
    labels: np.ndarray

    def __post_init__(self) -> None:
        """Inputs and labels belong together."""
        if len(self.inputs) != len(self.labels):
            raise DataError(f"{len(self.inputs)} inputs but {len(self.labels)} labels")

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.labels)

    def at(self, places: np.ndarray) -> Split:
        """The examples at some places."""
        return Split(self.inputs[places], self.labels[places])


@dataclass(frozen=True)
class Data:
    """A dataset in memory. Images are normalised as (x / 255 - mean) / std per channel when a batch is made."""

    name: str
    num_classes: int
    train: Split
    test: Split
    validation: Split | None = None
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    is_augmented: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(self.train.inputs.shape[1:])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the decoded arrays."""
        splits = [self.train, self.test, *([self.validation] if self.validation is not None else [])]
        return digest_of(*(array for split in splits for array in (split.inputs, split.labels)))


class Dataset(Protocol):
    """A named source of data; building one reads nothing."""

    def load(self, folder: Path | None) -> Data:
        """Read and check the data; `folder` is where the user keeps datasets (None: the default place)."""
        ...


datasets: Registry[Dataset] = Registry("datasets", "fedreuse.learning.datasets")


def digest_of(*arrays: np.ndarray) -> str:
    """SHA-256 over dtype, shape and bytes of arrays."""
    digest = sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
