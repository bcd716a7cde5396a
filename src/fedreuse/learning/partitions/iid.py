"""No skew: shuffled examples in equal parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedreuse.core.errors import require
from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.client_index import ClientIndex
from fedreuse.learning.partitions.partition import Partition, even_pieces, partitions, require_enough

__all__ = ["Iid"]


@partitions.register("iid")
@dataclass(frozen=True)
class Iid(Partition):
    """No skew: the shuffled examples are cut into parts whose sizes differ by at most one.

    Args:
        min_examples: Smallest number of examples of a client, at least 1.

    Example:
        task: {name: digits, clients: 20, partition: iid}

    """

    min_examples: int = 1

    def __post_init__(self) -> None:
        """Check the range."""
        require(self.min_examples >= 1, "iid.min_examples must be at least 1", self.min_examples)

    def split(self, examples: Examples, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Shuffle and cut."""
        require_enough(len(examples), num_clients, self.min_examples)
        owners = np.empty(len(examples), dtype=np.int64)
        owners[rng.permutation(len(examples))] = even_pieces(len(examples), num_clients)
        return ClientIndex.from_owners(owners, num_clients)
