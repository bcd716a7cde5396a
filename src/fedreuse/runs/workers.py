"""What a worker needs to play clients: the configuration, which travels, and the data, which is shared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.engine.executors.executor import Workplace
from fedreuse.learning.data import Data, Split
from fedreuse.learning.partitions import ClientIndex
from fedreuse.learning.trainer import Trainer, initial_network
from fedreuse.runs.config import RunConfig, load

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from fedreuse.core.local_trainer import Metrics
    from fedreuse.core.model import Model
    from fedreuse.engine.executors.executor import Look
    from fedreuse.learning.task import PreparedTask

__all__ = ["TaskSetup", "evaluator_of", "shared_arrays"]


@dataclass(frozen=True)
class TaskSetup:
    """A prepared task without its arrays; calling it with them, in any process, makes its clients."""

    config: Mapping[str, Any]
    facts: Mapping[str, Any]

    @classmethod
    def of(cls, config: RunConfig, prepared: PreparedTask) -> TaskSetup:
        """What travels."""
        names = ("name", "num_classes", "mean", "std", "is_augmented")
        return cls(config.to_plain(), {name: getattr(prepared.data, name) for name in names})

    def __call__(self, arrays: Mapping[str, np.ndarray]) -> Workplace:
        """The method, and trainers over the shared data."""
        config = load(self.config)
        nothing = Split(arrays["inputs"][:0], arrays["labels"][:0])
        data = Data(train=Split(arrays["inputs"], arrays["labels"]), test=nothing, **self.facts)
        clients = (
            ClientIndex(arrays["training offsets"], arrays["training"]),
            ClientIndex(arrays["validation offsets"], arrays["validation"]),
        )
        has_official = "official inputs" in arrays
        official = Split(arrays["official inputs"], arrays["official labels"]) if has_official else None
        network = initial_network(config.network, data.shape, data.num_classes, config.seed)
        trainer = Trainer(network, data, clients, config.local, (config.task.loss, config.task.metric), config.seed)
        return Workplace(config.build_method(), network.schema, trainer.for_client, evaluator_of(trainer, official))


def shared_arrays(prepared: PreparedTask) -> dict[str, np.ndarray]:
    """What all workers of a machine share: the data and the partition, never the test split."""
    data, official = prepared.data, prepared.official_validation
    arrays = {
        "inputs": data.train.inputs,
        "labels": data.train.labels,
        "training offsets": prepared.training.offsets,
        "training": prepared.training.indices,
        "validation offsets": prepared.validation.offsets,
        "validation": prepared.validation.indices,
    }
    if official is not None:
        arrays |= {"official inputs": official.inputs, "official labels": official.labels}
    return arrays


def evaluator_of(trainer: Trainer, official: Split | None) -> Look:
    """Evaluates on the dataset's own validation split, or else on what all clients hold out together."""

    def look(model: Model, start: int, stop: int) -> Metrics:
        if official is not None:
            return trainer.evaluate(model, Split(official.inputs[start:stop], official.labels[start:stop]))
        return trainer.evaluate(model, index=trainer.validation.indices[start:stop])

    return look
