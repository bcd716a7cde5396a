"""A task whose data stay at home, as its two sides have it: the server without examples, a node with its own."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

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

    from fedreuse.learning.task import Task

__all__ = ["at_node", "at_server", "is_at_home"]


def is_at_home(dataset: Dataset) -> TypeGuard[AtHome]:
    """Whether the examples of a task lie with its clients."""
    return isinstance(dataset, AtHome)


def at_server(task: Task, examples: Sequence[int]) -> PreparedTask:
    """What the server knows: how many training examples each client told, and a test set of its own, sealed."""
    data = check_data(task.dataset.load(None), task.dataset)
    sizes = np.asarray(examples, np.int64)
    training = ClientIndex(starts_of(sizes), np.arange(sizes.sum()))
    nothing = ClientIndex(np.zeros_like(training.offsets), np.empty(0, np.int64))
    open_data = dataclasses.replace(data, test=_none_of(data.test))
    return PreparedTask(task, open_data, data.digest, training, nothing, None, SealedSplit(data.test), is_at_home=True)


def at_node(task: Task, path: str, client: int, seed: int) -> PreparedTask:
    """What the node of one client has: the examples of a folder, all that client's, with its own share held out.

    The share is that of a simulation in which the client has the same examples in the same order.
    """
    dataset = task.dataset
    if not is_at_home(dataset):
        raise ConfigError("task: this dataset is read by every node from the same place; at_home is not")
    data = check_data(dataset.read(path), dataset)
    index = ClientIndex.from_owners(np.full(len(data.train), client), task.clients)
    share = 0.0 if data.validation is not None else task.validation
    training, validation = hold_out(
        index, data.train.strata, share, partial(first_numbers, seed, "validation"), data.copies
    )
    official = data.validation if task.validation else None
    open_data = dataclasses.replace(data, test=_none_of(data.test), validation=None)
    return PreparedTask(task, open_data, data.digest, training, validation, official, SealedSplit(data.test))


def _none_of(split: Split) -> Split:
    return Split(split.inputs[:0], split.labels[:0])
