"""All examples of all sources, one after the other: what is known of each, and their inputs written to one array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.learning.files.coded import Coded
from fedreuse.learning.files.layout import SPLITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedreuse.learning.files.layout import Located
    from fedreuse.learning.files.source import Facts

__all__ = ["LEFT_OUT", "TEST", "TRAIN", "UNDECIDED", "VALIDATION", "Pool", "gather"]

UNDECIDED, TRAIN, VALIDATION, TEST, LEFT_OUT = range(5)
_CODES = {"train": TRAIN, "validation": VALIDATION, "test": TEST}


@dataclass(frozen=True, eq=False)
class Pool:
    """Examples in the order of their sources."""

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
        """Size of all inputs."""
        shape, dtype = self.form
        return len(self) * int(np.prod(shape, dtype=np.int64)) * dtype.itemsize

    def place_of(self, example: int) -> str:
        """File and row of an example, for messages."""
        number = int(np.searchsorted(np.cumsum(self.counts), example, side="right"))
        return f"{self.located[number].source.where}: row {example - int(self.counts[:number].sum())}"

    def fill(self, inputs: np.ndarray, digests: np.ndarray | None) -> np.ndarray:
        """Write all inputs, and a digest of each with label and client; returns which lack a number or a label."""
        is_missing = self.labels.codes < 0
        clients = np.full(len(self), -1) if self.clients is None else self.clients.codes
        start = 0
        for located in self.located:
            for chunk in located.source.chunks():
                stop = start + len(chunk)
                inputs[start:stop] = chunk.reshape(inputs[start:stop].shape)
                if chunk.dtype.kind == "f":
                    is_missing[start:stop] |= np.isnan(chunk.reshape(len(chunk), -1)).any(axis=1)
                if digests is not None:
                    digests[start:stop] = _digests(
                        inputs[start:stop], self.labels.codes[start:stop], clients[start:stop]
                    )
                start = stop
        if start != len(self):
            raise DataError(
                f"{self.place_of(0)}: {start} inputs, but {len(self)} labels; the file changes while it is read"
            )
        return is_missing

    def name_missing(self, example: int, row: np.ndarray) -> str:
        """What is missing in an example, as its file calls it."""
        if self.labels.codes[example] < 0:
            return "the label"
        number = int(np.searchsorted(np.cumsum(self.counts), example, side="right"))
        return self.located[number].source.input_name(int(np.argmax(np.isnan(row.ravel()))))


def gather(located: Sequence[Located]) -> Pool:
    """The facts of all sources, which must have inputs of one shape and type."""
    facts = [one.source.facts() for one in located]
    counts = np.array([len(one.labels) for one in facts])
    form = located[0].source.form()
    for one in located[1:]:
        if one.source.form() != form:
            raise DataError(
                f"{one.source.where}: its inputs are {_told(one.source.form())}, those of {located[0].source.where} "
                f"{_told(form)}; all have one shape and type"
            )
    if not counts.sum():
        raise DataError(f"{located[0].source.where}: there are no examples")
    _check_labels(located, facts)
    splits = np.concatenate([_splits(one, fact) for one, fact in zip(located, facts, strict=True)])
    labels = Coded.joined([fact.labels for fact in facts])
    return Pool(located, counts, labels, _clients(located, facts), _times(located, facts), splits, _kept_as(form))


def _check_labels(located: Sequence[Located], facts: Sequence[Facts]) -> None:
    """Labels that are rows have one length everywhere."""
    first = facts[0].labels.values.shape[1:]
    for one, fact in zip(located, facts, strict=True):
        found = fact.labels.values.shape[1:]
        if found != first:
            raise DataError(
                f"{one.source.where}: its labels have the shape {found} per example, those of "
                f"{located[0].source.where} {first}; all have one shape"
            )


def _kept_as(form: tuple[tuple[int, ...], np.dtype]) -> tuple[tuple[int, ...], np.dtype]:
    """uint8 and fractions stay, other whole numbers become int64, which torch can index with."""
    shape, dtype = form
    return shape, dtype if dtype == np.uint8 or dtype.kind == "f" else np.dtype(np.int64)


def _clients(located: Sequence[Located], facts: Sequence[Facts]) -> Coded | None:
    """Clients by place or column; a source that names none has none (-1)."""
    parts: list[Coded] = []
    for one, fact in zip(located, facts, strict=True):
        count = len(fact.labels)
        if one.client is not None:
            parts.append(Coded(np.zeros(count, np.int64), np.array([one.client])))
        elif fact.clients is not None:
            _require_all(fact.clients, one.source.where)
            parts.append(fact.clients)
        else:
            parts.append(Coded(np.full(count, -1, np.int64), np.empty(0, np.int64)))
    clients = Coded.joined(parts)
    return clients if (clients.codes >= 0).any() else None


def _require_all(clients: Coded, where: str) -> None:
    if (clients.codes < 0).any():
        row = int(np.argmax(clients.codes < 0))
        raise DataError(f"{where}: row {row} names no client in task.client_column; fill it in, or remove the row")


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
    """The split of every example: by column, by place, or undecided."""
    if facts.splits is None:
        code = UNDECIDED if located.split is None else _CODES[located.split]
        return np.full(len(facts.labels), code, np.int8)
    codes = []
    for value in facts.splits.values:
        word = str(value).strip().lower()
        if word not in SPLITS:
            raise DataError(
                f"{located.source.where}: '{value}' in task.split_column is no split; write train, validation or test"
            )
        codes.append(_CODES[SPLITS[word]])
    if (facts.splits.codes < 0).any():
        row = int(np.argmax(facts.splits.codes < 0))
        raise DataError(f"{located.source.where}: row {row} names no split in task.split_column; fill it in")
    splits: np.ndarray = np.array(codes, np.int8)[facts.splits.codes]
    return splits


def _digests(inputs: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """128 bits per example: equal for exact copies of the same client alone."""
    rows = np.ascontiguousarray(inputs).reshape(len(inputs), -1).view(np.uint8)
    beside = [np.ascontiguousarray(column[:, None]).view(np.uint8) for column in columns]
    packed = np.concatenate([rows, *beside], axis=1)
    digest: Callable[..., bytes] = lambda row: blake2b(row, digest_size=16).digest()  # noqa: E731
    return np.frombuffer(b"".join(map(digest, packed)), np.uint64).reshape(-1, 2)


def _told(form: tuple[tuple[int, ...], np.dtype]) -> str:
    return f"{form[1]} of shape {form[0]}"
