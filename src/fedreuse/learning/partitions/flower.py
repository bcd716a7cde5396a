"""Flower's partitioners, from the package flwr-datasets."""

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
    """A partitioner of flwr-datasets, so that clients have the same examples as in a Flower study.

    The partitioner sees a dataset with the column `label`, and `client` and `time` if the data have them.

    Args:
        partitioner: Class in `flwr_datasets.partitioner`, such as `DirichletPartitioner`.
        options: Arguments of the partitioner; `partition_by` names one of the columns above. Draws depend on its own
            `seed`, not on the seed of the run.
        min_examples: Smallest number of examples of a client, at least 1.

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

    @property
    def uses_clients(self) -> bool:  # type: ignore[override]  # depends on the options
        """True if the partitioner divides by the column `client`."""
        by = self.options.get("partition_by", ())
        return "client" in ([by] if isinstance(by, str) else by)

    def split(self, examples: Examples, num_clients: int, rng: np.random.Generator) -> ClientIndex:
        """Run the partitioner, and read the examples of each of its parts."""
        del rng  # the partitioner has its own seed
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
        partitioner = self._class()(**self.options)
        from datasets import Dataset

        columns = {"label": examples.labels, "client": examples.clients, "time": examples.times}
        known = {name: values for name, values in columns.items() if values is not None}
        partitioner.dataset = Dataset.from_dict({"example": np.arange(len(examples)), **known})
        if partitioner.num_partitions != num_clients:
            raise ConfigError(
                f"task.partition: {self.partitioner} makes {partitioner.num_partitions} partitions, but task.clients "
                f"is {num_clients}; set task.clients: {partitioner.num_partitions}"
            )
        return [np.asarray(partitioner.load_partition(client)["example"], np.int64) for client in range(num_clients)]

    def _class(self) -> Any:
        try:
            module = import_module("flwr_datasets.partitioner")
        except ImportError as error:
            raise ConfigError(
                f"task.partition: flower needs the package flwr-datasets ({error}); pip install flwr-datasets"
            ) from None
        cls = getattr(module, self.partitioner, None)
        if cls is None:
            hint = suggest(self.partitioner, module.__all__)
            raise ConfigError(f"task.partition.partitioner: there is no '{self.partitioner}'; {hint}")
        return cls
