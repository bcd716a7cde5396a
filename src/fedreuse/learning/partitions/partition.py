"""The base class of partitions, and checks that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import ConfigError, require
from fedreuse.core.registry import Registry
from fedreuse.learning.data import Examples

if TYPE_CHECKING:
    from fedreuse.learning.partitions.client_index import ClientIndex

__all__ = ["Partition", "by_class", "even_pieces", "partitions", "require_enough", "require_sizes"]


class Partition(ABC):
    """Base class of partitions: frozen dataclasses that assign training examples to clients.

    A custom partition derives from this class and is named `package.module:Name` in a configuration.

    Example:
        >>> from dataclasses import dataclass
        >>> from fedreuse.learning.partitions import ClientIndex
        >>> @dataclass(frozen=True)
        ... class EveryOther(Partition):
        ...     def split(self, examples, num_clients, rng):
        ...         return ClientIndex.from_owners(np.arange(len(examples)) % num_clients, num_clients)

    """

    chooses_examples: bool = False
    """True if the partition selects the examples that are used, so that `task.limit` cannot be set."""
    uses_clients: bool = False
    """True if the partition uses the natural clients of the data; others are refused with `task.client_column`."""

    names_clients: bool = False
    """True if the partition itself says which clients there are, so that `task.clients` is counted unless given."""

    @property
    def deals_by_class(self) -> bool:
        """True if the partition uses the classes of examples; it is refused for labels that are not classes."""
        return False

    @abstractmethod
    def split(self, examples: Examples, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Assign the examples to clients.

        Args:
            examples: Labels, and natural clients and times if the data have them.
            num_clients: `task.clients`, the number of clients of the result.
            rng: The only source of randomness; the same generator gives the same result.

        Raises:
            ConfigError: The examples cannot be assigned by this rule.

        """

    def count_clients(self, examples: Examples) -> int | None:
        """Return the number of clients that the data determine; None if `task.clients` decides, as by default."""
        del examples
        return None

    def shift(self, inputs: np.ndarray, index: ClientIndex, rng: np.random.Generator) -> np.ndarray:
        """Return the training inputs as the clients see them; unchanged by default."""
        del index, rng
        return inputs


partitions: Registry[Partition] = Registry("partitions", "fedreuse.learning.partitions", base=Partition)


def by_class(labels: np.ndarray) -> tuple[list[int], list[np.ndarray]]:
    """Return size and members of each class that occurs, in the order of the labels."""
    _, sizes = np.unique(labels, return_counts=True)
    return sizes.tolist(), np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])


def even_pieces(num_items: int, num_pieces: int) -> np.ndarray:
    """Return the part of each item when items are cut into parts whose sizes differ by at most one."""
    return np.repeat(np.arange(num_pieces), np.diff(np.arange(num_pieces + 1) * num_items // num_pieces))


def require_enough(num_examples: int, num_clients: int, min_examples: int) -> None:
    """Refuse settings that need more examples than there are."""
    require(num_clients >= 1, "task.clients must be at least 1", num_clients)
    if num_clients * min_examples > num_examples:
        raise ConfigError(
            f"task.partition: {num_clients} clients (task.clients) with at least {min_examples} examples "
            f"each need {num_clients * min_examples}, but there are {num_examples}; take at most "
            f"{num_examples // min_examples} clients, fewer examples per client, or more data"
        )


def require_sizes(index: ClientIndex, min_examples: int, where: str, remedy: str) -> None:
    """Refuse an index with a client below `min_examples`; `remedy` ends the message."""
    smallest = int(np.argmin(index.sizes))
    if index.sizes[smallest] < min_examples:
        raise ConfigError(
            f"{where}: client {smallest} has {index.sizes[smallest]} examples, "
            f"below min_examples {min_examples}; {remedy}"
        )
