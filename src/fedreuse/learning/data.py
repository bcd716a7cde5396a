"""What a dataset is once it is in memory: splits of examples, how to normalise them, how to augment them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.core.registry import Registry
from fedreuse.learning.targets import kind_of, strata_of

if TYPE_CHECKING:
    from pathlib import Path

    from fedreuse.learning.targets import LabelKind

__all__ = ["Data", "Dataset", "Examples", "Split", "datasets", "digest_of"]


@dataclass(frozen=True)
class Split:
    """Examples: inputs and labels.

    Inputs are images (uint8, N x C x H x W), float32 of any shape, or int64 token numbers. Labels are classes (whole
    numbers), one class per token (N x length, `IGNORED` where none counts), numbers (fractions) or flags (truth values,
    N x labels).
    """

    inputs: np.ndarray
    labels: np.ndarray

    def __post_init__(self) -> None:
        """Check that there is one label per input."""
        if len(self.inputs) != len(self.labels):
            raise DataError(f"{len(self.inputs)} inputs but {len(self.labels)} labels")

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.labels)

    @property
    def strata(self) -> np.ndarray:
        """What these examples are divided by in proportion: their classes, if labels are classes."""
        return strata_of(self.labels)

    def at(self, places: np.ndarray) -> Split:
        """The examples at some places."""
        return Split(self.inputs[places], self.labels[places])


@dataclass(frozen=True)
class Examples:
    """What a partition may know of the training examples: never their inputs.

    Args:
        labels: Class of each example; all 0 where labels are no classes.
        clients: Natural client of each example, numbered from 0; None where the data have none.
        times: When each example arose, in any unit that sorts; None where the data do not say.
        names: What the data call each natural client, by its number.

    """

    labels: np.ndarray
    clients: np.ndarray | None = None
    times: np.ndarray | None = None
    names: np.ndarray | None = None

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.labels)

    def at(self, places: np.ndarray) -> Examples:
        """The same facts of some examples."""
        clients = None if self.clients is None else self.clients[places]
        times = None if self.times is None else self.times[places]
        return Examples(self.labels[places], clients, times, self.names)

    def name_of(self, client: int) -> str:
        """A client as the user knows it."""
        return f"client {client}" if self.names is None else f"client {client} ('{self.names[client]}')"


@dataclass(frozen=True)
class Data:
    """A dataset in memory, or mapped. Pixels are normalised as (x / 255 - mean) / std per channel when a batch is made.

    Where mean and std are None, they are those of the examples that a run trains on. `num_classes` is the number of
    outputs that a network needs: classes, tokens, flags or numbers.
    """

    name: str
    num_classes: int
    train: Split
    test: Split
    validation: Split | None = None
    mean: tuple[float, ...] | None = (0.0,)
    std: tuple[float, ...] | None = (1.0,)
    is_augmented: bool = False
    is_scaled: bool = False
    """Whether fractions are normalised too, as (x - mean) / std."""
    clients: np.ndarray | None = None
    """Natural client of each training example, numbered from 0."""
    held_out_clients: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Natural client of each example for `test` and `validation`, -1 for one without training examples."""
    client_names: np.ndarray | None = None
    """What the data call each of these clients."""
    times: np.ndarray | None = None
    """When each training example arose, in any unit that sorts."""
    copies: np.ndarray | None = None
    """A number per training example that exact copies at one client share, where there are any: they stay together."""
    notes: tuple[str, ...] = ()
    """What a user should know of the data."""
    num_tokens: int | None = None
    """Where inputs are token numbers: how many there are."""
    padding: int | None = None
    """Which of them fills up short texts, where the data say so; negative if none of them does."""

    @property
    def kind(self) -> LabelKind:
        """What labels are."""
        return kind_of(self.train.labels)

    @property
    def examples(self) -> Examples:
        """What a partition may know of the training examples."""
        return Examples(self.train.strata, self.clients, self.times, self.client_names)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return tuple(self.train.inputs.shape[1:])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the decoded arrays."""
        splits = [self.train, self.test, *([self.validation] if self.validation is not None else [])]
        return digest_of(*(array for split in splits for array in (split.inputs, split.labels)))


class Dataset(ABC):
    """A named source of data; building one reads nothing."""

    @abstractmethod
    def load(self, folder: Path | None) -> Data:
        """Read and check the data; `folder` is where the user keeps datasets (None: the default place)."""


datasets: Registry[Dataset] = Registry("datasets", "fedreuse.learning.datasets", base=Dataset)


def digest_of(*arrays: np.ndarray) -> str:
    """SHA-256 over dtype, shape and bytes of arrays."""
    digest = sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
