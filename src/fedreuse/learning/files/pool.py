"""All examples of all sources in one sequence: labels, clients, times and splits, and the inputs in one array."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.learning.files.layout import SPLITS
from fedreuse.learning.files.source import Coded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedreuse.learning.files.layout import Located
    from fedreuse.learning.files.source import Facts

__all__ = ["LEFT_OUT", "TEST", "TRAIN", "UNDECIDED", "VALIDATION", "Pool", "gather"]

UNDECIDED, TRAIN, VALIDATION, TEST, LEFT_OUT = range(5)
"""Codes of the splits."""
_CODES = {"train": TRAIN, "validation": VALIDATION, "test": TEST}


@dataclass(frozen=True, eq=False)
class Pool:
    """Examples in the order of their sources.

    Args:
        located: The sources.
        counts: Number of examples of each source.
        labels: Label of each example.
        clients: Client of each example; None: no source names clients.
        times: Time of each example; None: no source has times.
        splits: Code of the split of each example.
        form: Shape and type of one input.
    """

    located: Sequence[Located]
    counts: np.ndarray
    labels: Coded
    clients: Coded | None
    times: np.ndarray | None
    splits: np.ndarray
    form: tuple[tuple[int, ...], np.dtype]

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.labels)

    @property
    def nbytes(self) -> int:
        """Size of all inputs in bytes."""
        shape, dtype = self.form
        return len(self) * int(np.prod(shape, dtype=np.int64)) * dtype.itemsize

    def row_of(self, example: int) -> str:
        """Return file and row of an example, for messages."""
        number = self._source_of(example)
        return f"{self.located[number].source.where}: row {example - int(self.counts[:number].sum())}"

    def fill(self, inputs: np.ndarray, digests: np.ndarray | None) -> np.ndarray:
        """Write all inputs, and a digest of each with its label and client.

        Returns:
            A truth value per example: True if it lacks a number or its label.

        Raises:
            DataError: A number is infinite, or a source has another number of inputs than of labels.
        """
        is_missing = self.labels.codes < 0
        clients = np.full(len(self), -1) if self.clients is None else self.clients.codes
        start = 0
        for located in self.located:
            for chunk in located.source.chunks():
                stop = start + len(chunk)
                inputs[start:stop] = chunk.reshape(inputs[start:stop].shape)
                if chunk.dtype.kind == "f":
                    is_missing[start:stop] |= np.isnan(chunk.reshape(len(chunk), -1)).any(axis=1)
                    self._refuse_infinite(chunk.reshape(len(chunk), -1), start)
                if digests is not None:
                    digests[start:stop] = _digests(
                        inputs[start:stop], self.labels.codes[start:stop], clients[start:stop]
                    )
                start = stop
        if start != len(self):
            raise DataError(
                f"{self.row_of(0)}: {start} inputs, but {len(self)} labels; the file changed while it was read"
            )
        return is_missing

    def name_missing(self, example: int, row: np.ndarray) -> str:
        """Return the file's name for the missing value of an example."""
        if self.labels.codes[example] < 0:
            return "the label"
        source = self.located[self._source_of(example)].source
        return source.input_name(int(np.argmax(np.isnan(row.ravel()))))

    def _refuse_infinite(self, rows: np.ndarray, start: int) -> None:
        """Refuse infinite inputs, with which every loss is NaN."""
        is_infinite = np.isinf(rows)
        if is_infinite.any():
            row, position = np.argwhere(is_infinite)[0].tolist()
            name = self.located[self._source_of(start + row)].source.input_name(position)
            raise DataError(
                f"{self.row_of(start + row)}: {name} is {rows[row, position]} (infinite, or too large for float32); "
                "correct it, or leave the cell empty and set task.missing: drop"
            )

    def _source_of(self, example: int) -> int:
        return int(np.searchsorted(np.cumsum(self.counts), example, side="right"))


def gather(located: Sequence[Located]) -> Pool:
    """Read the facts of all sources, which must have inputs of one shape and type.

    Raises:
        DataError: Inputs or labels differ in shape or type, a client, time or split is missing, or there is no example.
    """
    first = located[0].source
    facts = [one.source.facts() for one in located]
    counts = np.array([len(fact.labels) for fact in facts])
    shape, dtype = first.form()
    for one in located[1:]:
        other_shape, other_dtype = one.source.form()
        if (other_shape, other_dtype) != (shape, dtype):
            raise DataError(
                f"{one.source.where}: its inputs are {other_dtype} of shape {other_shape}, those of {first.where} "
                f"{dtype} of shape {shape}; all have one shape and type"
            )
    if not counts.sum():
        raise DataError(f"{first.where}: there are no examples")
    _check_labels(located, facts)
    splits = np.concatenate([_splits(one, fact) for one, fact in zip(located, facts, strict=True)])
    labels = Coded.joined([fact.labels for fact in facts])
    if dtype != np.uint8 and dtype.kind != "f":
        dtype = np.dtype(np.int64)  # token numbers, which torch can index with
    return Pool(located, counts, labels, _clients(located, facts), _times(located, facts), splits, (shape, dtype))


def _check_labels(located: Sequence[Located], facts: Sequence[Facts]) -> None:
    """Require labels of one shape in all sources."""
    expected = facts[0].labels.values.shape[1:]
    for one, fact in zip(located, facts, strict=True):
        shape = fact.labels.values.shape[1:]
        if shape != expected:
            raise DataError(
                f"{one.source.where}: its labels have the shape {shape} per example, those of "
                f"{located[0].source.where} {expected}; all have one shape"
            )


def _clients(located: Sequence[Located], facts: Sequence[Facts]) -> Coded | None:
    """Return the clients by folder or column, -1 for sources that name none; None if no source does."""
    parts: list[Coded] = []
    for one, fact in zip(located, facts, strict=True):
        count = len(fact.labels)
        if one.client is not None:
            parts.append(Coded(np.zeros(count, np.int64), np.array([one.client])))
        elif fact.clients is not None:
            if (fact.clients.codes < 0).any():
                row = int(np.argmax(fact.clients.codes < 0))
                raise DataError(
                    f"{one.source.where}: row {row} names no client in task.client_column; fill it in, or remove the "
                    "row"
                )
            parts.append(fact.clients)
        else:
            parts.append(Coded(np.full(count, -1, np.int64), np.empty(0, np.int64)))
    clients = Coded.joined(parts)
    return clients if (clients.codes >= 0).any() else None


def _times(located: Sequence[Located], facts: Sequence[Facts]) -> np.ndarray | None:
    times = [fact.times for fact in facts if fact.times is not None]
    if not times:
        return None
    for one, fact in zip(located, facts, strict=True):
        if fact.times is None:
            raise DataError(
                f"{one.source.where}: it has no times, though other files have; add them, or drop task.time_column"
            )
    return np.concatenate(times)


def _splits(located: Located, facts: Facts) -> np.ndarray:
    """Return the split of every example: by column, by folder, or undecided."""
    if facts.splits is None:
        code = UNDECIDED if located.split is None else _CODES[located.split]
        return np.full(len(facts.labels), code, np.int8)
    codes = []
    for value in facts.splits.values:
        word = str(value).strip().lower()
        if word not in SPLITS:
            raise DataError(
                f"{located.source.where}: '{value}' in task.split_column is not a split; write train, validation, test"
            )
        codes.append(_CODES[SPLITS[word]])
    if (facts.splits.codes < 0).any():
        row = int(np.argmax(facts.splits.codes < 0))
        raise DataError(f"{located.source.where}: row {row} names no split in task.split_column; fill it in")
    splits: np.ndarray = np.array(codes, np.int8)[facts.splits.codes]
    return splits


def _digests(inputs: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """Return 128 bits per example, equal only for exact copies at one client."""
    rows = np.ascontiguousarray(inputs).reshape(len(inputs), -1).view(np.uint8)
    more = [np.ascontiguousarray(column[:, None]).view(np.uint8) for column in columns]
    packed = np.concatenate([rows, *more], axis=1)
    content = b"".join(blake2b(row, digest_size=16).digest() for row in packed)
    return np.frombuffer(content, np.uint64).reshape(-1, 2)
