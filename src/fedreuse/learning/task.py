"""The learning task: a dataset, its partition over clients, held-out examples, the loss and the metrics."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.errors import ConfigError, require, suggest
from fedreuse.core.randomness import stream
from fedreuse.core.registry import named_plain, parse, part
from fedreuse.core.streams import first_numbers
from fedreuse.learning.checks import check_data
from fedreuse.learning.data import Data, Dataset, datasets
from fedreuse.learning.files.layout import files_below
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
    """A dataset and its division among clients; in a configuration the keys of the dataset are given beside these.

    Args:
        dataset: The dataset; in a configuration `name` selects it.
        clients: Number of clients, at least 1. Data with natural clients (`client_column`, or the partition
            `client_table`) have their own number, which is the default then; another number is refused.
        limit: Number of training examples to use, drawn in the proportions of the labels; not smaller than `clients`.
            Default: all.
        partition: Assignment of the training examples to clients. With `client_column` it is `natural`.
        validation: Share of each client's examples held out for validation, in [0, 1); with 0 no model is selected.
        loss: Loss that training minimises.
        metric: Metric that selects models; higher is better.
        metrics: Further metrics that are reported, by name or as a list.

    Raises:
        ConfigError: A value is out of range, the metric cannot select, `limit` is set with a partition that selects
            examples itself, or `client_column` is set with a partition that ignores natural clients.

    Example: `task: {name: digits, clients: 30, partition: {name: dirichlet, alpha: 0.5}, metric: accuracy}`.
    """

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
            f"limit and the partition {partitions.name_of(self.partition)} would both select examples; drop one of "
            "them, limit",
            self.limit,
        )
        column = getattr(self.dataset, "client_column", None)
        require(
            column is None or self.partition.uses_clients,
            f"partition must be natural (the default then), because client_column is {column!r}: drop partition, or, "
            "to divide the examples by another rule, drop client_column and leave that column out of input_columns",
            partitions.name_of(self.partition),
        )
        require(0 <= self.validation < 1, "validation must be in [0, 1)", self.validation)
        require(
            self.metric.can_select,
            f"metric must be one where higher is better, because it selects models; {self.metric.instead}, metric",
            metrics.name_of(self.metric),
        )

    @property
    def scoring(self) -> Scoring:
        """The metric that selects models, and the others without it."""
        return Scoring(self.metric, {name: metric for name, metric in self.metrics.items() if metric != self.metric})

    def to_plain(self) -> dict[str, Any]:
        """Return the mapping of a configuration file: the dataset's name and keys, and those of the task.

        The key `metrics` is left out if there are no other metrics.
        """
        own = {
            field.name: named_plain(field.metadata["registry"], getattr(self, field.name))
            if "registry" in field.metadata
            else getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name in TASK_KEYS and field.name != "metrics"
        }
        others = {name: named_plain(metrics, metric) for name, metric in self.scoring.others.items()}
        return {**named_plain(datasets, self.dataset), **own, **({"metrics": others} if others else {})}

    def prepare(self, seed: int) -> PreparedTask:
        """Read the data, assign examples to clients, hold out validation, and seal the test split.

        Args:
            seed: Seed of the run.

        Raises:
            ConfigError: Partition, loss or metric do not fit the labels, or there are too few examples.
            DataError: The data are absent or damaged.
        """
        data = check_data(self.dataset.load(None), self.dataset)
        self._check_kind(data.kind)
        strata = data.train.strata
        used = self._used(strata, seed)
        assigned = self.partition.split(data.examples.at(used), self.clients, stream(seed, "partition"))
        index = dataclasses.replace(assigned, indices=used[assigned.indices])
        inputs = self.partition.shift(data.train.inputs, index, stream(seed, "feature shift"))
        # a published validation split is used instead of held-out training examples
        share = 0.0 if data.validation is not None else self.validation
        numbers = partial(first_numbers, seed, "validation")
        training, validation = hold_out(index, strata, share, numbers, data.copies)
        official = data.validation if self.validation else None
        sealed = SealedSplit(data.test)  # from here on the test examples are reachable only through the seal
        shifted = dataclasses.replace(data.train, inputs=inputs)
        mean, std = data.mean, data.std
        if mean is None or std is None:
            mean, std = statistics_of(inputs, training.indices)  # without validation examples
        no_test = data.test.at(np.arange(0))
        open_data = dataclasses.replace(data, train=shifted, test=no_test, validation=None, mean=mean, std=std)
        owners = _owners(data, index)
        return PreparedTask(self, open_data, data.digest, training, validation, official, sealed, owners)

    def _check_kind(self, kind: LabelKind) -> None:
        """Refuse a partition, loss or metric that is not for this kind of labels."""
        if kind != "classes" and self.partition.deals_by_class:
            raise ConfigError(
                f"task.partition: {partitions.name_of(self.partition)} uses classes, but labels here are {kind}; "
                "choose iid, natural, quantity or time_ordered"
            )
        parts = {"task.loss": self.loss, "task.metric": self.metric}
        parts |= {f"task.metrics.{name}": metric for name, metric in self.metrics.items()}
        for key, chosen in parts.items():
            kinds: Collection[LabelKind] | None = getattr(chosen, "label_kinds", None)  # custom parts may not have it
            if kinds is not None and kind not in kinds:
                registry: Registry[Any] = losses if key == "task.loss" else metrics
                raise ConfigError(
                    f"{key}: {registry.name_of(chosen)} is for labels that are {' or '.join(kinds)}, but here they "
                    f"are {kind}; {_REMEDIES[kind]}"
                )

    def _used(self, labels: np.ndarray, seed: int) -> np.ndarray:
        """Return the positions of the training examples that are used."""
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
"""Keys of a task that belong to no dataset, and so remain when another dataset is chosen."""


@dataclass(frozen=True, eq=False)
class PreparedTask:
    """A task with its data in memory; test examples are accessible only through the sealed split.

    Args:
        task: The task.
        data: The data, without the test examples and the published validation split.
        digest: SHA-256 of all arrays of the data.
        training: Training examples of every client.
        validation: Held-out training examples of every client.
        official_validation: Published validation split, if there is one and validation is not switched off.
        test: Test split.
    """

    task: Task
    data: Data
    digest: str
    training: ClientIndex
    validation: ClientIndex
    official_validation: Split | None
    test: SealedSplit
    owners: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    """Client of each example of `test` and the published `validation`, if clients are natural; -1: none of them."""
    is_at_home: bool = False
    """True if only the clients have examples, and this is the server's side."""

    @property
    def has_validation(self) -> bool:
        """True if models can be selected by validation; nodes that keep their data evaluate themselves."""
        if self.is_at_home:
            return self.task.validation > 0
        return self.official_validation is not None or len(self.validation.indices) > 0


def parse_task(value: object, where: str) -> Task:
    """Parse a task: its own keys, and the other keys as those of the dataset that `name` selects.

    With `client_column`, the partition is `natural` unless another is named. With it, or with a partition that names
    the clients, `clients` is counted in the data unless it is given: only then are the data read here.

    Raises:
        ConfigError: The dataset or a key is unknown, or a value is out of range.
        DataError: Clients are counted, and the data are absent or damaged.
    """
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
    keys = {"dataset": rest, **{key: value[key] for key in own & value.keys()}}
    if value.get("client_column") is not None and value.get("partition") is None:
        keys["partition"] = "natural"
    is_given = value.get("clients") is not None
    is_counted = value.get("client_column") is not None and not is_given
    task: Task = parse(Task, keys | ({"clients": 1} if is_counted else {}), where)
    is_counted |= task.partition.names_clients and not is_given
    return dataclasses.replace(task, clients=_natural_clients(task, where)) if is_counted else task


_COUNTED: dict[str, int | None] = {}
"""Numbers of natural clients by dataset, partition and state of the files; a study parses one task many times."""


def _natural_clients(task: Task, where: str) -> int:
    """Return the number of natural clients of the data."""
    files = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in _files_of(task.dataset)]
    key = repr((task.dataset, task.partition, files))
    if key not in _COUNTED:
        _COUNTED[key] = task.partition.count_clients(check_data(task.dataset.load(None), task.dataset).examples)
    count = _COUNTED[key]
    if count is None:
        raise ConfigError(
            f"{where}.clients: the partition {partitions.name_of(task.partition)} needs a number of clients; set it"
        )
    return count


def _files_of(dataset: Dataset) -> list[Path]:
    path = getattr(dataset, "path", None)
    return files_below(path) if isinstance(path, str) else []


def _owners(data: Data, index: ClientIndex) -> dict[str, np.ndarray]:
    """Return the client of each held-out example, if every natural client is one client of the federation.

    A split without any example of a client is common to all of them, and left out.
    """
    if data.clients is None or not data.held_out_clients:
        return {}
    natural = data.clients[index.indices]
    owner_of = np.full(int(data.clients.max()) + 2, -1)
    owner_of[natural] = index.owners  # the last entry stays -1, for held-out clients without training examples
    # one client per natural client and the other way round, or no owner can be named
    pairs = np.unique(np.stack([natural, index.owners]), axis=1).shape[1]
    if not pairs == len(np.unique(natural)) == index.num_clients:
        return {}
    owners = {split: owner_of[clients] for split, clients in data.held_out_clients.items()}
    return {split: numbers for split, numbers in owners.items() if (numbers >= 0).any()}
