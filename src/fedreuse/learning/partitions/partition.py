"""What a partition is given, what it returns, and the checks that all partitions share."""

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
    """A rule that deals training examples to clients. A rule of one's own derives from this class.

    Example:
        >>> @dataclass(frozen=True)
        ... class EveryOther(Partition):
        ...     def split(self, examples, num_clients, rng):
        ...         return ClientIndex.from_owners(np.arange(len(examples)) % num_clients, num_clients)

    """

    chooses_examples: bool = False
    """Whether the rule itself says which examples are used, so that `task.limit` may not say it too."""

    @property
    def deals_by_class(self) -> bool:
        """Whether the rule looks at the examples' classes, so that there must be some."""
        return False

    @abstractmethod
    def split(self, examples: Examples, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Deal the examples.

        Args:
            examples: Labels, and natural clients and times where the data have them.
            num_clients: `task.clients`; the answer has as many.
            rng: The only source of chance; the same generator gives the same answer.

        Raises:
            ConfigError: The examples cannot be dealt like this.

        """

    def shift(self, inputs: np.ndarray, index: ClientIndex, rng: np.random.Generator) -> np.ndarray:
        """The training inputs as their clients see them; unchanged unless the rule changes features too."""
        del index, rng
        return inputs


partitions: Registry[Partition] = Registry("partitions", "fedreuse.learning.partitions", base=Partition)


def by_class(labels: np.ndarray) -> tuple[list[int], list[np.ndarray]]:
    """Size and members of each class that occurs, in the order of the labels."""
    _, sizes = np.unique(labels, return_counts=True)
    return sizes.tolist(), np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])


def even_pieces(num_items: int, num_pieces: int) -> np.ndarray:
    """The piece of each item when items are cut as evenly as whole numbers allow."""
    return np.repeat(np.arange(num_pieces), np.diff(np.arange(num_pieces + 1) * num_items // num_pieces))


def require_enough(num_examples: int, num_clients: int, min_examples: int) -> None:
    """Refuse at once what counting rules out."""
    require(num_clients >= 1, "task.clients must be at least 1", num_clients)
    if num_clients * min_examples > num_examples:
        raise ConfigError(
            f"task.partition: {num_clients} clients (task.clients) with at least {min_examples} examples "
            f"each need {num_clients * min_examples}, but there are {num_examples}; take at most "
            f"{num_examples // min_examples} clients, fewer examples per client, or more data"
        )


def require_sizes(index: ClientIndex, min_examples: int, where: str, way_out: str) -> None:
    """Refuse a client that has too little."""
    smallest = int(np.argmin(index.sizes))
    if index.sizes[smallest] < min_examples:
        raise ConfigError(
            f"{where}: client {smallest} has {index.sizes[smallest]} examples, "
            f"below min_examples {min_examples}; {way_out}"
        )
