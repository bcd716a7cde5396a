"""Flower's own partitioners, where the package flwr-datasets is installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from fedreuse.core.errors import ConfigError, suggest
from fedreuse.learning.data import Examples
from fedreuse.learning.partitions.client_index import ClientIndex
from fedreuse.learning.partitions.partition import Partition, partitions, require_sizes

__all__ = ["Flower"]


@partitions.register("flower")
@dataclass(frozen=True)
class Flower(Partition):
    """A partitioner of flwr-datasets, so that a Flower study and this one deal the same examples.

    The partitioner sees a dataset with the columns `label`, and `client` and `time` where the data have them.

    Args:
        partitioner: The class in `flwr_datasets.partitioner`, such as `DirichletPartitioner`.
        options: Its arguments; `partition_by` names one of the columns above. Chance is the partitioner's own `seed`,
            not the run's.
        min_examples: Fewest examples a client may have, at least 1.

    Raises:
        ConfigError: The package or the class is missing, the arguments do not fit, or the number of partitions is not
            `task.clients`.

    Example:
        task:
          name: digits
          clients: 20
          partition:
            name: flower
            partitioner: DirichletPartitioner
            options: {num_partitions: 20, partition_by: label, alpha: 0.5, seed: 1}

    """

    partitioner: str
    options: Mapping[str, Any] = field(default_factory=dict)
    min_examples: int = 1

    def split(self, examples: Examples, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Let the partitioner deal, and read off which examples each part has."""
        del rng  # the partitioner has a seed of its own
        try:
            parts = self._parts(examples, num_clients)
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(
                f"task.partition.options: {self.partitioner} refuses {dict(self.options)}: {error}"
            ) from None
        owners = np.full(len(examples), -1, dtype=np.int64)
        for client, places in enumerate(parts):
            owners[places] = client
        index = ClientIndex.from_owners(owners, num_clients)
        require_sizes(index, self.min_examples, "task.partition", "change its options, or lower min_examples")
        return index

    def _parts(self, examples: Examples, num_clients: int) -> list[np.ndarray]:
        built = self._class()(**self.options)
        from datasets import Dataset

        columns = {"label": examples.labels, "client": examples.clients, "time": examples.times}
        known = {name: values for name, values in columns.items() if values is not None}
        built.dataset = Dataset.from_dict({"example": np.arange(len(examples)), **known})
        if built.num_partitions != num_clients:
            raise ConfigError(
                f"task.partition: {self.partitioner} makes {built.num_partitions} partitions, but task.clients is "
                f"{num_clients}; set task.clients: {built.num_partitions}"
            )
        return [np.asarray(built.load_partition(client)["example"], np.int64) for client in range(num_clients)]

    def _class(self) -> Any:
        try:
            module = import_module("flwr_datasets.partitioner")
        except ImportError as error:
            raise ConfigError(
                f"task.partition: flower needs the package flwr-datasets ({error}); pip install flwr-datasets"
            ) from None
        found = getattr(module, self.partitioner, None)
        if found is None:
            way_out = suggest(self.partitioner, module.__all__)
            raise ConfigError(f"task.partition.partitioner: there is no '{self.partitioner}'; {way_out}")
        return found
