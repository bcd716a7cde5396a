"""What is learnt: a dataset, how it is dealt to clients, what is held out, what is minimised and reported."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.errors import ConfigError, require, suggest
from fedreuse.core.randomness import stream
from fedreuse.core.registry import named_plain, parse, part
from fedreuse.core.streams import first_numbers
from fedreuse.learning.checks import check_data
from fedreuse.learning.data import Data, Dataset, datasets
from fedreuse.learning.losses.loss import Loss, losses
from fedreuse.learning.metrics.metric import Metric, metrics
from fedreuse.learning.normalisation import statistics_of
from fedreuse.learning.partitions import Partition, partitions
from fedreuse.learning.scoring import Scoring, parse_metrics
from fedreuse.learning.splits import SealedSplit, draw, hold_out

if TYPE_CHECKING:
    from fedreuse.core.registry import Registry
    from fedreuse.learning.data import Split
    from fedreuse.learning.partitions import ClientIndex
    from fedreuse.learning.targets import LabelKind

__all__ = ["TASK_KEYS", "PreparedTask", "Task", "parse_task"]


@dataclass(frozen=True)
class Task:
    """A dataset and how it becomes a federation; in a configuration the dataset's own keys stand beside these."""

    dataset: Dataset = part(datasets)
    clients: int = 50
    limit: int | None = None
    partition: Partition = part(partitions, {"name": "dirichlet", "alpha": 0.5})
    validation: float = 0.1
    loss: Loss = part(losses, "cross_entropy")
    metric: Metric = part(metrics, "accuracy")
    metrics: Mapping[str, Metric] = dataclasses.field(default_factory=dict, metadata={"parse": parse_metrics})

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.clients >= 1, "clients must be at least 1", self.clients)
        require(self.limit is None or self.limit >= self.clients, "limit must not be smaller than clients", self.limit)
        require(
            isinstance(self.partition, Partition),
            "partition must derive from fedreuse.learning.partitions.Partition",
            type(self.partition).__name__,
        )
        require(
            self.limit is None or not self.partition.chooses_examples,
            f"limit and an {partitions.name_of(self.partition)} would both say which examples are used; drop one of "
            "them, limit",
            self.limit,
        )
        require(0 <= self.validation < 1, "validation must be in [0, 1)", self.validation)
        require(
            self.metric.can_select,
            f"metric must be one of which more is better, because it selects; {self.metric.instead}, metric",
            metrics.name_of(self.metric),
        )

    @property
    def scoring(self) -> Scoring:
        """The metric that selects, and the others, each once."""
        return Scoring(self.metric, {name: one for name, one in self.metrics.items() if one != self.metric})

    def to_plain(self) -> dict[str, Any]:
        """The mapping of a configuration file: the dataset's name and keys beside ours.

        Without other metrics there is no such key, as in configurations from before there could be: run ids stay.
        """
        own = {
            field.name: named_plain(field.metadata["registry"], getattr(self, field.name))
            if "registry" in field.metadata
            else getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name in TASK_KEYS and field.name != "metrics"
        }
        others = {name: named_plain(metrics, one) for name, one in self.scoring.others.items()}
        return {**named_plain(datasets, self.dataset), **own, **({"metrics": others} if others else {})}

    def prepare(self, seed: int) -> PreparedTask:
        """Read the data, deal it (or as much as `limit` lets), hold out validation, seal the test split."""
        data = check_data(self.dataset.load(None), self.dataset)
        self._check_kind(data.kind)
        strata = data.train.strata
        used = self._used(strata, seed)
        dealt = self.partition.split(data.examples.at(used), self.clients, stream(seed, "partition"))
        index = dataclasses.replace(dealt, indices=used[dealt.indices])
        inputs = self.partition.shift(data.train.inputs, index, stream(seed, "feature shift"))
        share = 0.0 if data.validation is not None else self.validation
        numbers = partial(first_numbers, seed, "validation")
        training, validation = hold_out(index, strata, share, numbers, data.copies)
        official = data.validation if self.validation else None
        sealed = SealedSplit(data.test)
        seen = dataclasses.replace(data.train, inputs=inputs)
        mean, std = data.mean, data.std
        if mean is None or std is None:
            mean, std = statistics_of(inputs, training.indices)
        open_data = dataclasses.replace(
            data, train=seen, test=_no_examples(data.test), validation=None, mean=mean, std=std
        )
        owners = _owners(data, index)
        return PreparedTask(self, open_data, data.digest, training, validation, official, sealed, owners)

    def _check_kind(self, kind: LabelKind) -> None:
        """Refuse a partition, loss or metric that is for other labels than the data have."""
        if kind != "classes" and self.partition.deals_by_class:
            raise ConfigError(
                f"task.partition: {partitions.name_of(self.partition)} deals by class, but labels here are {kind}; "
                "choose iid, natural, quantity or time_ordered"
            )
        where = {"task.loss": self.loss, "task.metric": self.metric}
        where |= {f"task.metrics.{name}": metric for name, metric in self.metrics.items()}
        for place, chosen in where.items():
            fits: Collection[LabelKind] | None = getattr(chosen, "label_kinds", None)  # one's own may take all
            if fits is not None and kind not in fits:
                registry: Registry[Any] = losses if place == "task.loss" else metrics
                raise ConfigError(
                    f"{place}: {registry.name_of(chosen)} is for labels that are {' or '.join(fits)}, but here they "
                    f"are {kind}; {_REMEDIES[kind]}"
                )

    def _used(self, labels: np.ndarray, seed: int) -> np.ndarray:
        """The training examples that are dealt at all."""
        if self.limit is not None and self.limit > len(labels):
            raise ConfigError(
                f"task.limit is {self.limit:,}, but there are {len(labels):,} training examples; "
                f"lower it to at most {len(labels)}, or drop it to use them all"
            )
        return np.arange(len(labels)) if self.limit is None else draw(labels, self.limit, stream(seed, "limit"))


_REMEDIES: dict[LabelKind, str] = {
    "classes": "set task.loss: cross_entropy and task.metric: accuracy",
    "tokens": "set task.loss: cross_entropy and task.metric: accuracy",
    "numbers": "set task.loss: squared_error and task.metric: r2",
    "flags": "set task.loss: binary_cross_entropy and task.metric: macro_f1",
}
TASK_KEYS = tuple(field.name for field in dataclasses.fields(Task) if field.name != "dataset")
"""Keys of a task in a configuration that belong to no dataset, and so stay when another dataset is chosen."""


@dataclass(frozen=True, eq=False)
class PreparedTask:
    """The data in memory; the test examples are reachable through the sealed split alone."""

    task: Task
    data: Data
    digest: str
    training: ClientIndex
    validation: ClientIndex
    official_validation: Split | None
    test: SealedSplit
    owners: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    """Client of each example for `test` and official `validation`, where clients are natural; -1 for nobody's."""
    is_at_home: bool = False
    """Whether the clients alone have examples, and this is the server's side."""

    @property
    def has_validation(self) -> bool:
        """Whether anything may be selected; who keeps data at home is asked."""
        if self.is_at_home:
            return self.task.validation > 0
        return self.official_validation is not None or len(self.validation.indices) > 0


def parse_task(value: object, where: str) -> Task:
    """Keys of the task are the task's, the others belong to the dataset that `name` selects."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: a mapping expected, for example {{name: digits, clients: 20}}; got {value!r}")
    own = set(TASK_KEYS)
    name = value.get("name")
    if not isinstance(name, str):
        raise ConfigError(f"{where}: a name is missing; name a dataset, for example {{name: digits}}")
    rest = {key: inner for key, inner in value.items() if key not in own}
    if ":" not in name:
        cls = datasets.get(name, where)
        known = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]  # a dataclass, by registration
        for key in rest.keys() - known - {"name"}:
            raise ConfigError(f"{where}.{key}: unknown key; {suggest(str(key), own | known)}")
    task: Task = parse(Task, {"dataset": rest, **{key: value[key] for key in own & value.keys()}}, where)
    return task


def _owners(data: Data, index: ClientIndex) -> dict[str, np.ndarray]:
    """Whose held out examples are whose, if every natural client is one client of the federation.

    A split of which nobody owns anything is there for all of them.
    """
    if data.clients is None or not data.held_out_clients:
        return {}
    natural = data.clients[index.indices]
    owner_of = np.full(int(data.clients.max()) + 2, -1)
    owner_of[natural] = index.owners
    pairs = np.unique(np.stack([natural, index.owners]), axis=1).shape[1]
    if not pairs == len(np.unique(natural)) == index.num_clients:
        return {}
    owners = {split: owner_of[clients] for split, clients in data.held_out_clients.items()}
    return {split: found for split, found in owners.items() if (found >= 0).any()}


def _no_examples(split: Split) -> Split:
    return dataclasses.replace(split, inputs=split.inputs[:0], labels=split.labels[:0])
