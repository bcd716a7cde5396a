"""What a worker needs to play clients: the configuration, which travels, and the data, which is shared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.config.run_config import load
from fedreuse.core.allowed import allowed
from fedreuse.learning.data import Data, Split
from fedreuse.learning.partitions import ClientIndex
from fedreuse.learning.splits import SealedSplit
from fedreuse.learning.task import PreparedTask
from fedreuse.runs.federation import assemble

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from fedreuse.config.run_config import RunConfig
    from fedreuse.engine.executors.executor import Workplace

__all__ = ["TaskSetup", "shared_arrays"]


@dataclass(frozen=True)
class TaskSetup:
    """A prepared task without its arrays; calling it with them, in any process, makes its clients."""

    config: Mapping[str, Any]
    facts: Mapping[str, Any]
    allowed: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: RunConfig, prepared: PreparedTask) -> TaskSetup:
        """What travels."""
        names = ("name", "num_classes", "mean", "std", "is_augmented", "is_scaled", "num_tokens")
        return cls(config.to_plain(), {name: getattr(prepared.data, name) for name in names}, allowed())

    def __call__(self, arrays: Mapping[str, np.ndarray]) -> Workplace:
        """The method, and trainers over the shared data."""
        config = load(self.config, allow=self.allowed)
        nothing = Split(arrays["inputs"][:0], arrays["labels"][:0])
        data = Data(train=Split(arrays["inputs"], arrays["labels"]), test=nothing, **self.facts)
        training = ClientIndex(arrays["training offsets"], arrays["training"])
        validation = ClientIndex(arrays["validation offsets"], arrays["validation"])
        has_official = "official inputs" in arrays
        official = Split(arrays["official inputs"], arrays["official labels"]) if has_official else None
        # the test split and the digest of all data stay with the run
        prepared = PreparedTask(config.task, data, "", training, validation, official, SealedSplit(nothing))
        return assemble(config, prepared).workplace


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
