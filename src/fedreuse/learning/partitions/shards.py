"""Few classes per client: shards of the examples sorted by label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedreuse.core.errors import require
from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.client_index import ClientIndex
from fedreuse.learning.partitions.partition import (
    Partition,
    even_pieces,
    partitions,
    require_enough,
    require_sizes,
)

__all__ = ["Shards"]


@partitions.register("shards")
@dataclass(frozen=True)
class Shards(Partition):
    """Few classes per client: the examples sorted by label are cut into equal shards, assigned at random.

    Args:
        shards_per_client: Number of shards of each client, at least 1; 2 in McMahan et al. (2017).
        min_examples: Smallest number of examples of a client, at least 1.

    Example:
        task: {name: digits, clients: 20, partition: {name: shards, shards_per_client: 2}}

    """

    shards_per_client: int = 2
    min_examples: int = 1

    deals_by_class = True

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.shards_per_client >= 1, "shards.shards_per_client must be at least 1", self.shards_per_client)
        require(self.min_examples >= 1, "shards.min_examples must be at least 1", self.min_examples)

    def split(self, examples: Examples, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Sort the examples, cut them into shards, and assign these to clients."""
        num_shards = num_clients * self.shards_per_client
        require_enough(len(examples), num_clients, max(self.shards_per_client, self.min_examples))
        dealt_to = np.empty(num_shards, dtype=np.int64)
        dealt_to[rng.permutation(num_shards)] = np.repeat(np.arange(num_clients), self.shards_per_client)
        owners = np.empty(len(examples), dtype=np.int64)
        owners[np.argsort(examples.labels, kind="stable")] = dealt_to[even_pieces(len(examples), num_shards)]
        index = ClientIndex.from_owners(owners, num_clients)
        require_sizes(index, self.min_examples, "task.partition", "take fewer clients or fewer shards_per_client")
        return index
