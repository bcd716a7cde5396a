"""A federation, built from its configuration in one way for everybody: the run, its workers, a deployed client."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from fedreuse.core.population import Population
from fedreuse.core.randomness import stream
from fedreuse.engine.executors.executor import Workplace
from fedreuse.learning.checks import check_network
from fedreuse.learning.data import Split
from fedreuse.learning.partitions import ClientIndex
from fedreuse.learning.splits import local_test
from fedreuse.learning.trainer import Trainer, initial_network
from fedreuse.robustness.poisoning import claimed, poisoned

if TYPE_CHECKING:
    from fedreuse.config.recipe import Recipe
    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.local_trainer import SplitName
    from fedreuse.core.method import Method
    from fedreuse.core.metrics import Metrics
    from fedreuse.core.model import Model
    from fedreuse.core.schema import ModelSchema
    from fedreuse.learning.flat_network import FlatNetwork
    from fedreuse.learning.task import PreparedTask

__all__ = ["Federation", "assemble"]


@dataclass(frozen=True, eq=False)
class Federation:
    """What a configuration becomes in one process: data, a trainer for every client, a method."""

    config: RunConfig
    prepared: PreparedTask
    network: FlatNetwork
    initial: Model
    recipe: Recipe
    method: Method

    @property
    def schema(self) -> ModelSchema:
        """What models are made of."""
        return self.network.schema

    @cached_property
    def trainer(self) -> Trainer:
        """Trains and evaluates any client, with the network of this process."""
        clients = (self.prepared.training, self.prepared.validation)
        objective = (self.config.task.loss, self.config.task.scoring)
        return Trainer(self.network, self.prepared.data, clients, self.config.local, objective, self.config.seed)

    @cached_property
    def population(self) -> Population:
        """The clients and how many examples each says it has."""
        return Population(claimed(self.prepared, self.config), self.config.max_examples)

    @property
    def workplace(self) -> Workplace:
        """What whoever plays clients has."""
        return Workplace(self.method, self.schema, self.trainer.for_client, self.validate)

    @property
    def num_validation(self) -> int:
        """How many validation examples there are: the dataset's own, or what clients hold out."""
        official = self.prepared.official_validation
        return len(self.prepared.validation.indices if official is None else official)

    def validate(self, model: Model, start: int, stop: int) -> Metrics:
        """A model on a part of the validation examples."""
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
    """Build a federation; `prepared` is the task's data where somebody has them already."""
    if prepared is None:
        prepared = poisoned(config.task.prepare(config.seed), config)
    data = prepared.data
    network = initial_network(config.network, data.shape, data.num_classes, config.seed)
    initial = network.read()
    recipe = config.recipe.resolved(config.scope(initial.schema))
    method = replace(config.build_method(recipe), initial=initial)
    federation = Federation(config, prepared, network, initial, recipe, method)
    check_network(federation.trainer)
    return federation
