"""Label skew by a fixed number of classes per client."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedreuse.core.errors import ConfigError, require
from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.client_index import ClientIndex
from fedreuse.learning.partitions.partition import (
    Partition,
    by_class,
    even_pieces,
    partitions,
    require_enough,
    require_sizes,
)

__all__ = ["Classes"]


@partitions.register("classes")
@dataclass(frozen=True)
class Classes(Partition):
    """Label skew: every client has `per_client` classes, and a class is divided evenly among its clients.

    This is the label skew #C = k of Li, Diao, Chen and He (Federated Learning on Non-IID Data Silos, ICDE 2022). One
    client after the other draws its classes among those with the fewest clients so far: every class has clients, and
    the numbers of clients of two classes differ by at most one.

    Args:
        per_client: Classes of each client, at least 1; at most the number of classes.
        min_examples: Smallest number of examples of a client, at least 1.

    Raises:
        ConfigError: There are fewer classes than `per_client`, clients x `per_client` does not cover the classes, or a
            class has fewer examples than clients.

    Example:
        task: {name: digits, clients: 20, partition: {name: classes, per_client: 2}}

    """

    per_client: int = 2
    min_examples: int = 1

    deals_by_class = True

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.per_client >= 1, "classes.per_client must be at least 1", self.per_client)
        require(self.min_examples >= 1, "classes.min_examples must be at least 1", self.min_examples)

    def split(self, examples: Examples, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Choose the classes of every client, then divide each shuffled class evenly among its clients."""
        require_enough(len(examples), num_clients, self.min_examples)
        sizes, members_of = by_class(examples.labels)
        has_class = self._choose(len(sizes), num_clients, rng)
        owners = np.empty(len(examples), dtype=np.int64)
        for number, members in enumerate(members_of):
            holders = np.flatnonzero(has_class[:, number])
            if len(members) < len(holders):
                raise ConfigError(
                    f"task.partition: class {number} has {len(members)} examples for {len(holders)} clients; take "
                    "fewer clients, or a smaller per_client"
                )
            owners[rng.permutation(members)] = holders[even_pieces(len(members), len(holders))]
        index = ClientIndex.from_owners(owners, num_clients)
        require_sizes(index, self.min_examples, "task.partition", "take fewer clients, or lower min_examples")
        return index

    def _choose(self, num_classes: int, num_clients: int, rng: np.random.Generator) -> np.ndarray:
        """Return a table (clients x classes) of the classes that each client has."""
        if self.per_client > num_classes:
            raise ConfigError(
                f"task.partition.per_client is {self.per_client}, but the training examples have {num_classes} "
                f"classes; lower it to at most {num_classes}"
            )
        if self.per_client * num_clients < num_classes:
            raise ConfigError(
                f"task.partition: {num_clients} clients (task.clients) with {self.per_client} classes each do not "
                f"cover the {num_classes} classes; take at least {-(-num_classes // self.per_client)} clients, or "
                f"per_client {-(-num_classes // num_clients)}"
            )
        has_class = np.zeros((num_clients, num_classes), dtype=bool)
        num_holders = np.zeros(num_classes, dtype=np.int64)
        for client in range(num_clients):
            # classes with the fewest clients first, equal ones in random order
            chosen = np.lexsort((rng.random(num_classes), num_holders))[: self.per_client]
            has_class[client, chosen] = True
            num_holders[chosen] += 1
        return has_class
