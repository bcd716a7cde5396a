"""What a worker process needs to play clients: the configuration, and the data in shared memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.engine.executors.shared_memory import Area, ArrayPlace, attach, open_arrays, place_arrays
from fedreuse.learning.data import Data, Split
from fedreuse.learning.partitions import ClientIndex
from fedreuse.learning.trainer import Trainer, initial_network
from fedreuse.runs.config import RunConfig, load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.core.method import Method
    from fedreuse.engine.executors.executor import BenchFactory
    from fedreuse.learning.task import PreparedTask

__all__ = ["SharedTask"]


@dataclass(frozen=True)
class SharedTask:
    """A prepared task whose arrays lie in shared memory; calling it, in any process, makes its clients."""

    config: Mapping[str, Any]
    area: Area
    places: Mapping[str, ArrayPlace]
    facts: Mapping[str, Any]

    @classmethod
    def share(cls, config: RunConfig, prepared: PreparedTask) -> SharedTask:
        """Copy the training data and the partition into shared memory, once."""
        data = prepared.data
        area, places = place_arrays(
            {
                "inputs": data.train.inputs,
                "labels": data.train.labels,
                "training offsets": prepared.training.offsets,
                "training": prepared.training.indices,
                "validation offsets": prepared.validation.offsets,
                "validation": prepared.validation.indices,
            }
        )
        facts = {name: getattr(data, name) for name in ("name", "num_classes", "mean", "std", "is_augmented")}
        return cls(config.to_plain(), area, places, facts)

    def __call__(self) -> tuple[Method, BenchFactory]:
        """The method, and benches over the shared data."""
        config = load(self.config)
        arrays = open_arrays(attach(self.area), self.places)
        nothing = Split(arrays["inputs"][:0], arrays["labels"][:0])
        data = Data(train=Split(arrays["inputs"], arrays["labels"]), test=nothing, **self.facts)
        clients = (
            ClientIndex(arrays["training offsets"], arrays["training"]),
            ClientIndex(arrays["validation offsets"], arrays["validation"]),
        )
        network = initial_network(config.network, data.shape, data.num_classes, config.seed)
        trainer = Trainer(network, data, clients, config.local, (config.task.loss, config.task.metric), config.seed)
        return config.build_method(), trainer.bench

    def close(self) -> None:
        """Give the memory back once every worker is gone."""
        os.close(self.area.descriptor)
