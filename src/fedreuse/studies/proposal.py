"""A first configuration for data: network, cohort, batch and candidate learning rates, from sizes and labels alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.errors import ConfigError
from fedreuse.learning.task import parse_task

if TYPE_CHECKING:
    from fedreuse.learning.task import PreparedTask

__all__ = ["DEVELOPMENT_SEED", "Proposal", "propose"]

DEVELOPMENT_SEED = 11
"""Seed of all choices; test scores come from other seeds."""
_LARGEST_COHORT = 10
_MAJORITY = 0.8
_FEW_TEST_ROWS = 1000


@dataclass(frozen=True)
class Proposal:
    """A configuration without method, seed and learning rate, and what was noticed on the way.

    Args:
        base: Keys of a configuration.
        rates: Learning rates to try, in ascending order.
        clients: Number of clients.
        notes: Sentences about the data that a reader of scores should know.
    """

    base: dict[str, Any]
    rates: tuple[float, ...]
    clients: int
    notes: tuple[str, ...] = ()


def propose(task: Mapping[str, Any], network: Mapping[str, Any] | None = None) -> Proposal:
    """Propose a configuration for a task.

    Args:
        task: Keys of `task`; loss and metrics are added.
        network: Network to use; None: an MLP for rows of numbers, a CNN for images.

    Raises:
        ConfigError: The data are texts, for which there is no default network.
        DataError: The data cannot be read.

    Example:
        >>> propose({"name": "digits", "clients": 10}).base["network"]
        {'name': 'cnn', 'width': 16}
    """
    prepared = parse_task({**task, **_objective(task)}, "task").prepare(DEVELOPMENT_SEED)
    data, sizes = prepared.data, prepared.training.sizes
    if network is None and (data.num_tokens is not None or data.train.inputs.dtype.kind == "i"):
        raise ConfigError("the data are texts or token numbers, for which no network is proposed; see configs/text")
    clients = len(sizes)
    median = float(np.median(sizes))
    batch = 16 if median < 100 else 32 if median < 1000 else 64
    is_image = len(data.shape) == 3 and min(data.shape[1:]) >= 4
    base = {
        "task": {**task, "clients": clients, **_objective(task)},
        "network": dict(network) if network is not None else _network(prepared, is_image=is_image),
        "local": {"epochs": 2 if is_image and median < 1000 else 1, "batch": batch,
                  "optimizer": {"name": "sgd", "momentum": 0.9}},
        "rounds": {"cohort": min(clients, _LARGEST_COHORT)},
        "development_seeds": [DEVELOPMENT_SEED],
    }  # fmt: skip
    rates = (0.005, 0.02, 0.05, 0.1) if is_image else (0.003, 0.01, 0.03, 0.1)
    return Proposal(base, rates, clients, tuple(_notes(prepared)))


def _objective(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return loss and metrics by the kind of labels."""
    if task.get("labels") == "numbers":
        return {"loss": "squared_error", "metric": "r2"}
    if task.get("labels") == "flags":
        return {"loss": "binary_cross_entropy", "metric": "macro_f1"}
    return {"metric": "accuracy", "metrics": ["macro_f1"]}


def _network(prepared: PreparedTask, *, is_image: bool) -> dict[str, Any]:
    examples = len(prepared.training.indices)
    if is_image:
        return {"name": "cnn", "width": 16 if examples < 10_000 else 32}
    hidden = [64, 32] if examples < 2_000 else [128, 64] if examples < 50_000 else [256, 128]
    return {"name": "mlp", "hidden": hidden}


def _notes(prepared: PreparedTask) -> list[str]:
    notes = [note for note in prepared.data.notes if note.startswith("rows with missing")]
    if prepared.data.kind == "classes":
        if len(prepared.test) < _FEW_TEST_ROWS:
            half = 98 / len(prepared.test) ** 0.5  # of a 95 % interval of a share, at most, in points
            notes.append(
                f"The test split has {len(prepared.test):,} rows: an accuracy is uncertain by up to {half:.0f} points."
            )
        counts = np.bincount(prepared.data.train.labels, minlength=prepared.data.num_classes)
        share = counts.max() / counts.sum()
        if share > _MAJORITY:
            notes.append(
                f"{share:.0%} of the labels are of one class: a model that always predicts it has that accuracy, so "
                "read macro_f1 in the report too."
            )
    return notes
