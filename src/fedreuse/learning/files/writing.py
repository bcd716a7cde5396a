"""Writing a simulated federation as files: one folder per client, in the format that the dataset `files` reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.learning.files.layout import CLIENTS
from fedreuse.learning.task import TASK_KEYS

if TYPE_CHECKING:
    from fedreuse.learning.data import Data, Split
    from fedreuse.learning.task import Task

__all__ = ["at_home_task", "write_clients"]


def write_clients(task: Task, seed: int, folder: Path) -> dict[str, Any]:
    """Write the examples of every client of a task and the common test split, and return the task that reads them.

    Args:
        task: The task; inputs are written as clients see them, after a feature shift.
        seed: Seed of the run, which decides the partition.
        folder: A new or empty folder. `clients/<number>/train.npz` holds the examples of a client, including those it
            holds out for validation; `test.npz` and, if the dataset has one, `validation.npz` are common to all.

    Returns:
        A mapping for the key `task` of a configuration. With the same seed, a run on it is bit-identical to a run on
        `task`: clients have the same numbers, their examples the same order, and nothing is drawn again.

    Raises:
        DataError: The folder is not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise DataError(
            f"{folder} is not empty; name a new folder, so that no client keeps an example of another split"
        )
    prepared = task.prepare(seed)
    whole = task.dataset.load(None)  # again, because a prepared task seals its test split
    width = len(str(task.clients - 1))
    for client in range(task.clients):
        # ascending, which is the order in which a partition deals them
        of_client = np.sort(np.concatenate([prepared.training.of(client), prepared.validation.of(client)]))
        path = folder / CLIENTS / str(client).zfill(width) / "train.npz"
        path.parent.mkdir(parents=True)
        times = None if whole.times is None else whole.times[of_client]
        _write(path, prepared.data.train.at(of_client), times)
    _write(folder / "test.npz", whole.test, None)
    if whole.validation is not None:
        _write(folder / "validation.npz", whole.validation, None)
    return _files_task(task, prepared.data, folder)


def at_home_task(task: dict[str, Any], data: Data) -> dict[str, Any]:
    """Return the task of a deployment: each node has one folder of `write_clients`, the server has the test split."""
    values = {"u": "pixels", "f": "numbers"}.get(data.train.inputs.dtype.kind, "tokens")
    names = (*TASK_KEYS, "labels", "mean", "std", "augment", "duplicates")
    kept = {key: task[key] for key in names if key in task and key != "partition"}
    if (Path(task["path"]) / "validation.npz").exists():
        kept["validation"] = 0.0  # the split is common to all clients, so none holds anything out
    schema = {"name": "at_home", "classes": data.num_classes, "shape": list(data.shape), "values": values}
    return {**kept, **schema, "test": f"{task['path']}/test.npz"}


def _write(path: Path, split: Split, times: np.ndarray | None) -> None:
    more = {} if times is None else {"time": times}
    np.savez(path, inputs=split.inputs, label=split.labels, **more)  # type: ignore[arg-type]  # arrays by name


def _files_task(task: Task, data: Data, folder: Path) -> dict[str, Any]:
    """Return the same task with the dataset `files`."""
    is_unscaled = data.train.inputs.dtype.kind == "f" and not data.is_scaled
    kept = {key: value for key, value in task.to_plain().items() if key in TASK_KEYS and key != "limit"}
    labels: dict[str, Any] = {} if data.kind == "classes" else {"labels": data.kind}
    labels |= {} if data.kind == "numbers" else {"classes": data.num_classes}
    return {
        **kept,
        **labels,
        "name": "files",
        "path": str(folder),
        "mean": [0.0] if is_unscaled else list(data.mean or ()),
        "std": [1.0] if is_unscaled else list(data.std or ()),
        "augment": data.is_augmented,
        "duplicates": getattr(task.dataset, "duplicates", "keep"),
        "partition": {"name": "natural", "min_examples": 1},
    }
