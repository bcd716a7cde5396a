"""A dataset in memory: splits of examples, with their normalisation and augmentation."""

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
    """Inputs and labels of examples.

    Args:
        inputs: Images (uint8, N x C x H x W), float32 of any shape, or int64 token numbers.
        labels: Classes (whole numbers, N), one class per token (N x length, `IGNORED` for tokens that do not count),
            numbers (fractions, N or N x outputs) or flags (truth values, N x labels).

    Raises:
        DataError: The numbers of inputs and labels differ.
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
        """Group of each example for stratified draws: its class, or 0 if labels are not classes."""
        return strata_of(self.labels)

    def at(self, positions: np.ndarray) -> Split:
        """Return the examples at some positions."""
        return Split(self.inputs[positions], self.labels[positions])


@dataclass(frozen=True)
class Examples:
    """The training examples as a partition sees them: without their inputs.

    Args:
        labels: Class of each example; 0 for all if labels are not classes.
        clients: Natural client of each example, numbered from 0; None: the data have none.
        times: Time of each example, in any unit that sorts; None: the data have none.
        names: Name of each natural client in the data, by its number.

    """

    labels: np.ndarray
    clients: np.ndarray | None = None
    times: np.ndarray | None = None
    names: np.ndarray | None = None

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.labels)

    def at(self, positions: np.ndarray) -> Examples:
        """Return the examples at some positions."""
        clients = None if self.clients is None else self.clients[positions]
        times = None if self.times is None else self.times[positions]
        return Examples(self.labels[positions], clients, times, self.names)

    def name_of(self, client: int) -> str:
        """Return number and name of a client, for messages."""
        return f"client {client}" if self.names is None else f"client {client} ('{self.names[client]}')"


@dataclass(frozen=True)
class Data:
    """A dataset in memory, or memory-mapped. Pixels of a batch are normalised as (x / 255 - mean) / std per channel.

    Args:
        name: Name of the dataset.
        num_classes: Number of outputs that a network needs: classes, tokens, flags or numbers.
        train: Examples for training.
        test: Examples for testing.
        validation: Published validation split; None: clients hold out examples of their own.
        mean: Mean per channel; None: that of the examples that a run trains on.
        std: Standard deviation per channel, above 0; None: that of the examples that a run trains on.
        is_augmented: Whether training crops and mirrors images.
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
    """True if inputs that are fractions are normalised too, as (x - mean) / std."""
    clients: np.ndarray | None = None
    """Natural client of each training example, numbered from 0."""
    held_out_clients: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Natural client of each example of `test` and `validation`; -1 for a client without training examples."""
    client_names: np.ndarray | None = None
    """Name of each natural client in the data, by its number."""
    times: np.ndarray | None = None
    """Time of each training example, in any unit that sorts."""
    copies: np.ndarray | None = None
    """A number per training example, equal for exact copies at one client, which stay in one split; None: no copies."""
    notes: tuple[str, ...] = ()
    """Notes on the data for the user, such as dropped rows."""
    num_tokens: int | None = None
    """Number of token numbers, if inputs are tokens."""
    padding: int | None = None
    """Token number that fills up short texts, if known; negative if there is none."""

    @property
    def kind(self) -> LabelKind:
        """Kind of the labels."""
        return kind_of(self.train.labels)

    @property
    def examples(self) -> Examples:
        """The training examples without their inputs, for a partition."""
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
    """Base class of datasets: frozen dataclasses that read or generate data; making one reads nothing.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Parity(Dataset):
        ...     examples: int = 100
        ...     def load(self, folder):
        ...         numbers = np.arange(self.examples)
        ...         split = Split(numbers[:, None].astype(np.float32), numbers % 2)
        ...         return Data("parity", 2, train=split, test=split)
        >>> len(Parity(10).load(None).train)
        10
    """

    @abstractmethod
    def load(self, folder: Path | None) -> Data:
        """Read and check the data.

        Args:
            folder: Folder of all datasets; None: the default ($FEDREUSE_DATA, else the user's cache).

        Raises:
            DataError: The data are absent or damaged.
        """


datasets: Registry[Dataset] = Registry("datasets", "fedreuse.learning.datasets", base=Dataset)


def digest_of(*arrays: np.ndarray) -> str:
    """Return the SHA-256 over dtype, shape and bytes of arrays."""
    digest = sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
