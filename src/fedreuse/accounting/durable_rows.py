"""Rows of a ledger of which only the last are in memory; earlier ones are read from the journal when needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeVar, overload

__all__ = ["DurableRows"]

R = TypeVar("R")


class DurableRows(Sequence[R]):
    """A list that grows at its end; rows that are stored elsewhere take no memory.

    Args:
        stored: Number of rows that are stored already.
        read: Returns the stored rows, perhaps with later ones behind them.

    Example:
        >>> from fedreuse.accounting.durable_rows import DurableRows
        >>> rows = DurableRows(1, lambda: ["a"])
        >>> rows.append("b")
        >>> list(rows), len(rows), rows[1:]
        (['a', 'b'], 2, ['b'])
    """

    def __init__(self, stored: int = 0, read: Callable[[], Iterable[R]] = tuple) -> None:
        """Start with what is stored."""
        self._stored, self._read = stored, read
        self._tail: list[R] = []

    def append(self, row: R) -> None:
        """Add a row."""
        self._tail.append(row)

    def extend(self, rows: Iterable[R]) -> None:
        """Add rows."""
        self._tail.extend(rows)

    def __len__(self) -> int:
        """Return the number of all rows."""
        return self._stored + len(self._tail)

    def __iter__(self) -> Iterator[R]:
        """Iterate over all rows; stored ones are read."""
        tail = tuple(self._tail)
        return chain(islice(self._read(), self._stored), tail) if self._stored else iter(tail)

    @overload
    def __getitem__(self, at: int) -> R: ...

    @overload
    def __getitem__(self, at: slice) -> list[R]: ...

    def __getitem__(self, at: int | slice) -> R | list[R]:
        """Return a row or a part of the rows; the stored ones are read only if it needs them."""
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            if start >= self._stored and step > 0:
                return self._tail[start - self._stored : stop - self._stored : step]
            return list(self)[at]
        place = at + len(self) if at < 0 else at
        return self._tail[place - self._stored] if place >= self._stored else list(self)[place]

    def __delitem__(self, at: slice) -> None:
        """Remove rows from the end; they must not be stored yet."""
        start, stop, _ = at.indices(len(self))
        if start < self._stored or stop != len(self):
            raise IndexError("only rows at the end that are not stored can be removed")
        del self._tail[start - self._stored :]

    def __eq__(self, other: object) -> bool:
        """Compare all rows."""
        return list(self) == list(other) if isinstance(other, DurableRows | list) else NotImplemented

    __hash__: Any = None
