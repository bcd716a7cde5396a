"""Time-ordered arrival: each client has one interval of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedreuse.core.errors import require
from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.client_index import ClientIndex
from fedreuse.learning.partitions.partition import Partition, even_pieces, partitions, require_enough

__all__ = ["TimeOrdered"]


@partitions.register("time_ordered")
@dataclass(frozen=True)
class TimeOrdered(Partition):
    """Time-ordered arrival: the examples, ordered by time, are cut into equal intervals; client 0 has the earliest.

    Without times (`task.time_column` of the dataset `files`) the stored order counts. Examples of the same time keep
    that order too; nothing is drawn.

    Args:
        min_examples: Smallest number of examples of a client, at least 1.

    Example:
        task: {name: files, path: meters.csv, time_column: when, clients: 12, partition: time_ordered}

    """

    min_examples: int = 1

    def __post_init__(self) -> None:
        """Check the range."""
        require(self.min_examples >= 1, "time_ordered.min_examples must be at least 1", self.min_examples)

    def split(self, examples: Examples, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Sort the examples by time and cut them."""
        del rng  # nothing is drawn
        require_enough(len(examples), num_clients, self.min_examples)
        order = np.arange(len(examples)) if examples.times is None else np.argsort(examples.times, kind="stable")
        owners = np.empty(len(examples), dtype=np.int64)
        owners[order] = even_pieces(len(examples), num_clients)
        return ClientIndex.from_owners(owners, num_clients)
