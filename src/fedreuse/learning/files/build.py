"""From a pool of examples to the arrays of the splits, in memory or mapped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.learning.files.labels import ClassSetting, FileLabels, encode, flags, numbers, tokens
from fedreuse.learning.files.pool import TEST, TRAIN, VALIDATION
from fedreuse.learning.files.source import CHUNK
from fedreuse.learning.files.splitting import Rule, copies_of, decide
from fedreuse.learning.files.store import Arrays

if TYPE_CHECKING:
    from fedreuse.learning.files.pool import Pool
    from fedreuse.learning.files.store import New

__all__ = ["Plan", "build"]

_NAMES = {TRAIN: "train", VALIDATION: "validation", TEST: "test"}


@dataclass(frozen=True)
class Plan:
    """What a configuration says beside the columns."""

    rule: Rule
    classes: ClassSetting
    shape: tuple[int, ...] | None
    missing: Literal["refuse", "drop"]
    labels: FileLabels = None


def build(pool: Pool, plan: Plan, new: New) -> Arrays:
    """Read the inputs once, decide who goes where, and write every split."""
    shape, dtype = pool.form
    whole = new("whole", (len(pool), *_shape(shape, plan.shape, pool)), dtype)
    digests = None if plan.rule.duplicates == "keep" else np.empty((len(pool), 2), np.uint64)
    is_missing = pool.fill(whole, digests)
    if plan.missing == "refuse" and is_missing.any():
        example = int(np.argmax(is_missing))
        raise DataError(
            f"{pool.place_of(example)}: {pool.name_missing(example, whole[example])} is missing (rows that lack "
            f"something: {np.count_nonzero(is_missing):,}); fill it in, or leave such rows out with task.missing: drop"
        )
    copies = None if digests is None else copies_of(digests)
    splits = decide(pool, is_missing, copies, plan.rule)
    labels, num_classes = _labels(pool, splits, plan)
    arrays: dict[str, np.ndarray] = {}
    for code, name in _NAMES.items():
        rows = np.flatnonzero(splits == code)
        if len(rows) or code != VALIDATION:
            arrays[f"{name}-inputs"] = _taken(whole, rows, f"{name}-inputs", new)
            arrays[f"{name}-labels"] = labels[rows]
    train = np.flatnonzero(splits == TRAIN)
    arrays |= _beside(pool, copies, train, splits)
    return Arrays(arrays, {"num_classes": num_classes, "notes": _notes(is_missing, copies, train)})


def _labels(pool: Pool, splits: np.ndarray, plan: Plan) -> tuple[np.ndarray, int]:
    if plan.labels == "numbers":
        return numbers(pool, splits)
    return {None: encode, "flags": flags, "tokens": tokens}[plan.labels](pool, splits, plan.classes)


def _shape(found: tuple[int, ...], wanted: tuple[int, ...] | None, pool: Pool) -> tuple[int, ...]:
    if wanted is None or wanted == found:
        return found
    if np.prod(found, dtype=np.int64) != np.prod(wanted, dtype=np.int64):
        raise DataError(
            f"{pool.located[0].source.where}: an input has the shape {found}, which is not the size of task.shape "
            f"{list(wanted)}; correct task.shape or task.input_columns"
        )
    return wanted


def _taken(whole: np.ndarray, rows: np.ndarray, name: str, new: New) -> np.ndarray:
    """Some rows as an array of their own."""
    taken = new(name, (len(rows), *whole.shape[1:]), whole.dtype)
    for start in range(0, len(rows), CHUNK):
        taken[start : start + CHUNK] = whole[rows[start : start + CHUNK]]
    return taken


def _beside(pool: Pool, copies: np.ndarray | None, train: np.ndarray, splits: np.ndarray) -> dict[str, np.ndarray]:
    """Client, time and number of copies of every training example, as far as they are known."""
    arrays: dict[str, np.ndarray] = {}
    if pool.clients is not None:
        clients = pool.clients.at(train)
        if (clients.codes < 0).any():
            example = int(train[np.argmax(clients.codes < 0)])
            raise DataError(f"{pool.place_of(example)} belongs to no client, though others do; put all below clients/")
        clients = clients.compact()
        arrays |= {"clients": clients.codes, "client-names": clients.values.astype(str)}
        arrays |= _held_out_clients(pool.clients.codes, train, splits)
    if pool.times is not None:
        arrays["times"] = pool.times[train]
    if copies is not None and _num_distinct(copies[train]) < len(train):
        arrays["copies"] = copies[train]
    return arrays


def _held_out_clients(codes: np.ndarray, train: np.ndarray, splits: np.ndarray) -> dict[str, np.ndarray]:
    """Client of every example for testing and validation, numbered as in training; -1 for one that does not train."""
    is_used = np.zeros(int(codes.max()) + 2, bool)
    is_used[codes[train]] = True
    number_of = np.where(is_used, np.cumsum(is_used) - 1, -1)
    return {f"{_NAMES[code]}-clients": number_of[codes[splits == code]] for code in (VALIDATION, TEST)}


def _notes(is_missing: np.ndarray, copies: np.ndarray | None, train: np.ndarray) -> list[str]:
    """What a user should know of the data, in sentences."""
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
    """How many different small whole numbers there are; counting is faster than sorting."""
    return int(np.count_nonzero(np.bincount(numbers)))
