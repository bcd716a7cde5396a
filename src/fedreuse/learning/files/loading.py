"""From sources to the arrays of the splits, in memory or converted once and mapped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.learning.data import Data, Split
from fedreuse.learning.datasets.folder import data_home
from fedreuse.learning.files import cache
from fedreuse.learning.files.cache import Arrays
from fedreuse.learning.files.labels import ClassSetting, FileLabels, encode, flags, numbers, tokens
from fedreuse.learning.files.layout import files_below
from fedreuse.learning.files.pool import TEST, TRAIN, VALIDATION, gather
from fedreuse.learning.files.source import CHUNK
from fedreuse.learning.files.splitting import Rule, copies_of, decide

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fedreuse.learning.files.cache import New
    from fedreuse.learning.files.layout import Located
    from fedreuse.learning.files.pool import Pool

__all__ = ["Plan", "build", "load_arrays", "to_data"]

_NAMES = {TRAIN: "train", VALIDATION: "validation", TEST: "test"}


@dataclass(frozen=True)
class Plan:
    """Settings that decide the arrays, besides the columns; see the dataset `files`."""

    rule: Rule
    classes: ClassSetting
    shape: tuple[int, ...] | None
    missing: Literal["refuse", "drop"]
    labels: FileLabels = None


def load_arrays(
    settings: object, path: str, folder: Path | None, plan: Plan, sources: Callable[[], Sequence[Located]]
) -> Arrays:
    """Return the arrays of the data at a path.

    Args:
        settings: Everything that decides the arrays besides the files; its `repr` is part of the cache key.
        path: A file or folder, or the name of a Python object, which is never cached.
        folder: Folder of all datasets, which holds the cache; None: the default.
        plan: Splits, classes and shape.
        sources: Called to open the sources, only if the cache has no arrays.
    """
    files = files_below(path)
    converted = cache.cache_folder(data_home(folder), settings, files)
    if files and (arrays := cache.read_converted(converted)) is not None:
        return arrays
    pool = gather(sources())
    if not files or pool.nbytes <= cache.IN_MEMORY:
        return build(pool, plan, cache.in_memory)
    return cache.convert(converted, partial(build, pool, plan))


def to_data(name: str, loaded: Arrays, **more: Any) -> Data:
    """Return the dataset of these arrays; `more` are further fields of `Data`."""
    arrays = loaded.arrays
    splits = {
        split: Split(arrays[f"{split}-inputs"], arrays[f"{split}-labels"])
        for split in _NAMES.values()
        if f"{split}-inputs" in arrays
    }
    return Data(
        name=name,
        num_classes=loaded.facts["num_classes"],
        train=splits["train"],
        test=splits["test"],
        validation=splits.get("validation"),
        clients=arrays.get("clients"),
        held_out_clients={split: arrays[f"{split}-clients"] for split in splits if f"{split}-clients" in arrays},
        client_names=arrays.get("client-names"),
        times=arrays.get("times"),
        copies=arrays.get("copies"),
        notes=tuple(loaded.facts["notes"]),
        **more,
    )


def build(pool: Pool, plan: Plan, new: New) -> Arrays:
    """Read the inputs once, decide the split of every example, and write every split.

    Raises:
        DataError: Values are missing, inputs do not have the configured size, or some examples have no client.
    """
    shape, dtype = pool.form
    if plan.shape is not None and np.prod(shape, dtype=np.int64) != np.prod(plan.shape, dtype=np.int64):
        raise DataError(
            f"{pool.located[0].source.where}: an input has the shape {shape}, which is not the size of task.shape "
            f"{list(plan.shape)}; correct task.shape or task.input_columns"
        )
    whole = new("whole", (len(pool), *(shape if plan.shape is None else plan.shape)), dtype)
    digests = None if plan.rule.duplicates == "keep" else np.empty((len(pool), 2), np.uint64)
    is_missing = pool.fill(whole, digests)
    if plan.missing == "refuse" and is_missing.any():
        example = int(np.argmax(is_missing))
        raise DataError(
            f"{pool.row_of(example)}: {pool.name_missing(example, whole[example])} is missing (rows with missing "
            f"values: {np.count_nonzero(is_missing):,}); fill it in, or leave such rows out with task.missing: drop"
        )
    copies = None if digests is None else copies_of(digests)
    splits = decide(pool, is_missing, copies, plan.rule)
    if plan.labels == "numbers":
        labels, num_classes = numbers(pool)
    elif plan.labels == "tokens":
        labels, num_classes = tokens(pool, plan.classes)
    else:
        labels, num_classes = (encode if plan.labels is None else flags)(pool, splits, plan.classes)
    arrays: dict[str, np.ndarray] = {}
    for code, name in _NAMES.items():
        rows = np.flatnonzero(splits == code)
        if len(rows) or code != VALIDATION:
            inputs = new(f"{name}-inputs", (len(rows), *whole.shape[1:]), dtype)
            for start in range(0, len(rows), CHUNK):  # piece by piece: both arrays may be larger than memory
                inputs[start : start + CHUNK] = whole[rows[start : start + CHUNK]]
            arrays[f"{name}-inputs"], arrays[f"{name}-labels"] = inputs, labels[rows]
    train = np.flatnonzero(splits == TRAIN)
    arrays |= _client_arrays(pool, train, splits)
    if pool.times is not None:
        arrays["times"] = pool.times[train]
    if copies is not None and _num_distinct(copies[train]) < len(train):
        arrays["copies"] = copies[train]
    return Arrays(arrays, {"num_classes": num_classes, "notes": _notes(is_missing, copies, train)})


def _client_arrays(pool: Pool, train: np.ndarray, splits: np.ndarray) -> dict[str, np.ndarray]:
    """Return the client of every example, numbered from 0 by the training examples, and the clients' names.

    A client without training examples has the number -1 in the other splits.
    """
    if pool.clients is None:
        return {}
    clients = pool.clients.at(train)
    if (clients.codes < 0).any():
        example = int(train[np.argmax(clients.codes < 0)])
        raise DataError(f"{pool.row_of(example)} belongs to no client, though others do; put all below clients/")
    clients = clients.compact()
    codes = pool.clients.codes
    trains = np.zeros(int(codes.max()) + 2, bool)  # the last entry is that of code -1
    trains[codes[train]] = True
    number_of = np.where(trains, np.cumsum(trains) - 1, -1)
    held_out = {f"{_NAMES[code]}-clients": number_of[codes[splits == code]] for code in (VALIDATION, TEST)}
    return {"clients": clients.codes, "client-names": clients.values.astype(str), **held_out}


def _notes(is_missing: np.ndarray, copies: np.ndarray | None, train: np.ndarray) -> list[str]:
    """Return notes on missing values and duplicates, for the user."""
    notes = []
    if is_missing.any():
        notes.append(f"rows with missing values, left out: {np.count_nonzero(is_missing):,}")
    if copies is not None:
        whole = ~is_missing
        num_copies = np.count_nonzero(whole) - _num_distinct(copies[whole])
        num_used = len(train) - _num_distinct(copies[train])
        notes.append(
            f"exact copies of another example of the same client: {num_copies:,}, of which {num_used:,} are used for "
            "training"
            if num_copies
            else "no example is an exact copy of another one of the same client"
        )
    return notes


def _num_distinct(numbers: np.ndarray) -> int:
    """Count distinct small whole numbers, which is faster than sorting them."""
    return int(np.count_nonzero(np.bincount(numbers)))
