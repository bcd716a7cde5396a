"""A task whose data stay with the clients: prepared for the server without examples, and for a node with its own."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import torch

from fedreuse.core.errors import ConfigError
from fedreuse.core.streams import first_numbers
from fedreuse.learning.checks import check_data
from fedreuse.learning.data import Dataset, Split
from fedreuse.learning.datasets.at_home import AtHome
from fedreuse.learning.partitions import ClientIndex
from fedreuse.learning.partitions.client_index import starts_of
from fedreuse.learning.splits import SealedSplit, hold_out
from fedreuse.learning.task import PreparedTask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedreuse.core.metrics import Metrics
    from fedreuse.learning.task import Task

__all__ = ["at_node", "at_server", "blank_answer", "is_at_home"]


def is_at_home(dataset: Dataset) -> TypeGuard[AtHome]:
    """Return whether the examples of a task stay with its clients."""
    return isinstance(dataset, AtHome)


def at_server(task: Task, examples: Sequence[int]) -> PreparedTask:
    """Prepare the task for the server.

    Args:
        task: A task with the dataset `at_home`.
        examples: Number of training examples that each client reported.

    Returns:
        The sizes of the clients without their examples, and the server's own test set, sealed.
    """
    data = check_data(task.dataset.load(None), task.dataset)
    sizes = np.asarray(examples, np.int64)
    training = ClientIndex(starts_of(sizes), np.arange(sizes.sum()))
    nothing = ClientIndex(np.zeros_like(training.offsets), np.empty(0, np.int64))
    open_data = dataclasses.replace(data, test=_none_of(data.test))
    return PreparedTask(task, open_data, data.digest, training, nothing, None, SealedSplit(data.test), is_at_home=True)


def at_node(task: Task, path: str, client: int, seed: int) -> PreparedTask:
    """Prepare the task for the node of one client.

    Args:
        task: A task with the dataset `at_home`.
        path: File or folder with the examples of the client.
        client: Number of the client.
        seed: Seed of the run.

    Returns:
        The examples, with the validation split held out as a simulation of the same examples in the same order does.

    Raises:
        ConfigError: The dataset is not `at_home`.
        DataError: The data are absent, damaged, or do not fit the schema.
    """
    dataset = task.dataset
    if not is_at_home(dataset):
        raise ConfigError("task: a node can read its own data only with the dataset at_home")
    data = check_data(dataset.read(path), dataset)
    index = ClientIndex.from_owners(np.full(len(data.train), client), task.clients)
    share = 0.0 if data.validation is not None else task.validation
    training, validation = hold_out(
        index, data.train.strata, share, partial(first_numbers, seed, "validation"), data.copies
    )
    official = data.validation if task.validation else None
    open_data = dataclasses.replace(data, test=_none_of(data.test), validation=None)
    return PreparedTask(task, open_data, data.digest, training, validation, official, SealedSplit(data.test))


def blank_answer(task: Task) -> Metrics:
    """Return an evaluation with the structure of those that nodes return, and the longest possible numbers.

    Args:
        task: A task with the dataset `at_home`.

    Raises:
        ConfigError: The dataset is not `at_home`.
    """
    dataset = task.dataset
    if not is_at_home(dataset):
        raise ConfigError("task: nodes evaluate only with the dataset at_home")
    labels = torch.from_numpy(dataset.blank_labels())
    # the metrics see outputs of the shape that the network has for such labels
    rows = labels.shape if dataset.labels == "tokens" else labels.shape[:1]
    return task.scoring.measure(torch.zeros(*rows, dataset.num_classes), labels, 0.0).longest


def _none_of(split: Split) -> Split:
    return Split(split.inputs[:0], split.labels[:0])
