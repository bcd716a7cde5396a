"""The federation of a configuration, built the same way in the run, in its workers and at a deployed node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from fedreuse.config.run_config import load
from fedreuse.core.allowed import allowed
from fedreuse.core.population import Population
from fedreuse.core.randomness import stream
from fedreuse.core.spool import spooled
from fedreuse.engine.clock import Clock
from fedreuse.engine.executors.executor import Site
from fedreuse.engine.state.client_store import MemoryStore
from fedreuse.learning.checks import check_network
from fedreuse.learning.data import Data, Split
from fedreuse.learning.partitions import ClientIndex
from fedreuse.learning.splits import SealedSplit, local_test
from fedreuse.learning.task import PreparedTask
from fedreuse.learning.together import Group, resolved_size
from fedreuse.learning.trainer import Trainer, initial_network
from fedreuse.robustness.bounds import most_examples
from fedreuse.robustness.poisoning import claimed, poisoned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from fedreuse.config.recipe import Recipe
    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.fleet import Fleet
    from fedreuse.core.local_trainer import SplitName
    from fedreuse.core.method import Method
    from fedreuse.core.metrics import Metrics
    from fedreuse.core.model import Model
    from fedreuse.core.schema import ModelSchema
    from fedreuse.engine.executors.executor import WorkerSetup
    from fedreuse.engine.state.client_store import ClientStore
    from fedreuse.learning.flat_network import FlatNetwork

__all__ = ["Federation", "assemble"]

_DATA_FACTS = ("name", "num_classes", "mean", "std", "is_augmented", "is_scaled", "num_tokens")
"""Fields of the data that are sent to workers as they are; the arrays lie in shared memory."""


@dataclass(frozen=True, eq=False)
class Federation:
    """Data, network, method and one trainer for all clients: a configuration as objects of one process."""

    config: RunConfig
    prepared: PreparedTask
    network: FlatNetwork
    initial: Model
    recipe: Recipe
    method: Method

    @property
    def schema(self) -> ModelSchema:
        """Names, shapes and types of the model's tensors."""
        return self.network.schema

    @cached_property
    def trainer(self) -> Trainer:
        """Trainer and evaluator of any client, with the network of this process."""
        clients = (self.prepared.training, self.prepared.validation)
        objective = (self.config.task.loss, self.config.task.scoring)
        return Trainer(self.network, self.prepared.data, clients, self.config.local, objective, self.config.seed)

    @cached_property
    def population(self) -> Population:
        """All clients, with the number of training examples that each claims to have."""
        examples, most = claimed(self.prepared, self.config), self.config.max_examples
        if self.config.bounds == "median" and most is None:
            most = most_examples(examples)
        return Population(examples, most)

    @cached_property
    def fleet(self) -> Fleet | None:
        """Devices of the clients; None without devices."""
        devices = self.config.devices
        return None if devices is None else devices.fleet(self.config.task.clients, self.config.seed)

    def clock(self, warn: Callable[[str], object] = str) -> Clock | None:
        """Return the clock of the run; None without devices."""
        rounds = self.config.rounds
        return None if self.fleet is None else Clock(self.fleet, rounds.deadline, rounds.wait_for, warn)

    def site(self, store: ClientStore, warn: Callable[[str], object] = str) -> Site:
        """Return what an executor needs to run the clients; their records lie in `store`."""
        config, (_, reason) = self.config, self.group_size
        if reason:
            warn(f"local.together: clients train one by one, because {reason}")
        return Site(
            self.method,
            self.schema,
            self.trainer.for_client,
            self.validate,
            store,
            config.faults,
            config.seed,
            self.worker_setup,
            self.shared_arrays,
            warn,
            self.population,
            config.rounds.cohort,
            self.together,
        )

    @cached_property
    def together(self) -> Group | None:
        """Training of several clients at once; None: one by one."""
        size, _ = self.group_size
        return Group(self.trainer, size) if size > 1 else None

    @cached_property
    def group_size(self) -> tuple[int, str]:
        """Clients that train together, and why it is one (empty if the configuration asks for no more)."""
        together = self.config.local.together
        return (1, "") if together == 1 else resolved_size(together, self.trainer, self.config.rounds.cohort)

    @property
    def worker_setup(self) -> WorkerSetup:
        """Function that builds the same site in a worker process, from the shared arrays."""
        facts = {name: getattr(self.prepared.data, name) for name in _DATA_FACTS}
        return partial(_site_of_worker, self.config.to_plain(), facts, allowed())

    @property
    def shared_arrays(self) -> dict[str, np.ndarray]:
        """Arrays that all workers of a machine share: the data and the partition, never the test split."""
        prepared, official = self.prepared, self.prepared.official_validation
        arrays = {
            "inputs": prepared.data.train.inputs,
            "labels": prepared.data.train.labels,
            "training offsets": prepared.training.offsets,
            "training": prepared.training.indices,
            "validation offsets": prepared.validation.offsets,
            "validation": prepared.validation.indices,
        }
        if official is not None:
            arrays |= {"official inputs": official.inputs, "official labels": official.labels}
        return arrays

    @property
    def num_validation(self) -> int:
        """Number of validation examples: the dataset's own, or those that the clients hold out."""
        official = self.prepared.official_validation
        return len(self.prepared.validation.indices if official is None else official)

    def validate(self, model: Model, start: int, stop: int) -> Metrics:
        """Evaluate a model on validation examples `start` to `stop`."""
        official = self.prepared.official_validation
        if official is not None:
            return self.trainer.evaluate(model, Split(official.inputs[start:stop], official.labels[start:stop]))
        return self.trainer.evaluate(model, index=self.prepared.validation.indices[start:stop])

    def deal(self, name: SplitName, split: Split) -> None:
        """Give every client examples of a split: its own where clients are natural, else in its labels' proportions."""
        if name in self.prepared.owners:
            owners = self.prepared.owners[name]
            self.trainer.deal(name, split, ClientIndex.from_owners(owners, self.prepared.training.num_clients))
            return
        labels, seed = self.prepared.data.train.strata, self.config.seed
        index = local_test(
            self.prepared.training, labels, split.strata, lambda client: stream(seed, f"local {name}", 0, client)
        )
        self.trainer.deal(name, split, index)


def assemble(config: RunConfig, prepared: PreparedTask | None = None) -> Federation:
    """Build a federation; `prepared` is the task's data if they are loaded already."""
    if prepared is None:
        prepared = poisoned(config.task.prepare(config.seed), config)
    data = prepared.data
    network = initial_network(config.network, data.shape, data.num_classes, config.seed)
    initial = network.read()
    initial = replace(initial, weights=spooled(initial.weights))
    recipe = config.recipe.resolved(config.scope(initial.schema))
    method = replace(config.build_method(recipe), initial=initial)
    federation = Federation(config, prepared, network, initial, recipe, method)
    check_network(federation.trainer)
    return federation


def _site_of_worker(
    config: Mapping[str, Any], facts: Mapping[str, Any], may_import: Sequence[str], arrays: Mapping[str, np.ndarray]
) -> Site:
    """Build the federation in a worker process, over the shared arrays."""
    built = load(config, allow=may_import)
    empty = Split(arrays["inputs"][:0], arrays["labels"][:0])
    data = Data(train=Split(arrays["inputs"], arrays["labels"]), test=empty, **facts)
    training = ClientIndex(arrays["training offsets"], arrays["training"])
    validation = ClientIndex(arrays["validation offsets"], arrays["validation"])
    has_official = "official inputs" in arrays
    official = Split(arrays["official inputs"], arrays["official labels"]) if has_official else None
    # the test split and the digest of all data stay in the process of the run
    prepared = PreparedTask(built.task, data, "", training, validation, official, SealedSplit(empty))
    return assemble(built, prepared).site(MemoryStore())
