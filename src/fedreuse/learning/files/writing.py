"""A simulated federation written as files: one folder per client, in the form that the dataset `files` reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.learning.files.layout import CLIENTS
from fedreuse.learning.task import TASK_KEYS

if TYPE_CHECKING:
    from fedreuse.learning.data import Data, Split
    from fedreuse.learning.task import PreparedTask, Task

__all__ = ["at_home_task", "write_clients"]


def write_clients(task: Task, seed: int, folder: Path) -> dict[str, Any]:
    """Write what every client of a task has, and the common test split, and return the task that reads them.

    Args:
        task: What is dealt; feature shifts are written as clients see them.
        seed: That of the run, which decides the partition.
        folder: A new or empty folder. `clients/<number>/train.npz` holds the examples of a client, those that it holds
            out for validation included; `test.npz` and, where the dataset has one, `validation.npz` are common.

    Returns:
        A mapping for the key `task` of a configuration. With the same seed, a run on it ends in the bits of a run on
        `task`: clients have the same numbers and their examples the same order, and nothing is drawn anew.

    Raises:
        DataError: The folder holds something already.
    """
    if folder.exists() and any(folder.iterdir()):
        raise DataError(
            f"{folder} is not empty; name a new folder, so that no client keeps an example of another split"
        )
    prepared = task.prepare(seed)
    whole = task.dataset.load(None)  # again, because a prepared task seals its test split
    places = [_examples_of(prepared, client) for client in range(task.clients)]
    width = len(str(task.clients - 1))
    for client, of_client in enumerate(places):
        path = folder / CLIENTS / str(client).zfill(width) / "train.npz"
        path.parent.mkdir(parents=True)
        times = None if whole.times is None else whole.times[of_client]
        _write(path, prepared.data.train.at(of_client), times)
    _write(folder / "test.npz", whole.test, None)
    if whole.validation is not None:
        _write(folder / "validation.npz", whole.validation, None)
    return _plain(task, prepared.data, folder)


def at_home_task(task: dict[str, Any], data: Data) -> dict[str, Any]:
    """The task of a deployment whose nodes have a folder of `write_clients` each, and the server the test split."""
    values = {"u": "pixels", "f": "numbers"}.get(data.train.inputs.dtype.kind, "tokens")
    names = (*TASK_KEYS, "labels", "mean", "std", "augment", "duplicates")
    kept = {key: task[key] for key in names if key in task and key != "partition"}
    if (Path(task["path"]) / "validation.npz").exists():
        kept["validation"] = 0.0  # everybody shares that split, so that no client holds anything out
    schema = {"name": "at_home", "classes": data.num_classes, "shape": list(data.shape), "values": values}
    return {**kept, **schema, "test": f"{task['path']}/test.npz"}


def _examples_of(prepared: PreparedTask, client: int) -> np.ndarray:
    """What a client was dealt, in the order in which it was: ascending."""
    return np.sort(np.concatenate([prepared.training.of(client), prepared.validation.of(client)]))


def _write(path: Path, split: Split, times: np.ndarray | None) -> None:
    beside = {} if times is None else {"time": times}
    np.savez(path, inputs=split.inputs, label=split.labels, **beside)  # type: ignore[arg-type]  # arrays by name


def _plain(task: Task, data: Data, folder: Path) -> dict[str, Any]:
    """The same task over the files."""
    is_plain = data.train.inputs.dtype.kind == "f" and not data.is_scaled
    kept = {key: value for key, value in task.to_plain().items() if key in TASK_KEYS and key != "limit"}
    labels: dict[str, Any] = {} if data.kind == "classes" else {"labels": data.kind}
    labels |= {} if data.kind == "numbers" else {"classes": data.num_classes}
    return {
        **kept,
        **labels,
        "name": "files",
        "path": str(folder),
        "mean": [0.0] if is_plain else list(data.mean or ()),
        "std": [1.0] if is_plain else list(data.std or ()),
        "augment": data.is_augmented,
        "duplicates": getattr(task.dataset, "duplicates", "keep"),
        "partition": {"name": "natural", "min_examples": 1},
    }
