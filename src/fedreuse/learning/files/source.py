"""The interface of a source of examples, and the columns it returns: label, client, time and split of every example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["CHUNK", "Coded", "ColumnNames", "Facts", "Source"]

CHUNK = 8192
"""Largest number of examples in memory while a source is read."""


@dataclass(frozen=True)
class ColumnNames:
    """Names of the columns (or arrays) of a source.

    Args:
        inputs: Columns of the inputs; None: all columns that are not named below.
        label: Column of the label.
        client: Column of the client; None: there is none.
        time: Column of the time; None: there is none.
        split: Column of the split; None: there is none.
    """

    inputs: tuple[str, ...] | None = None
    label: str = "label"
    client: str | None = None
    time: str | None = None
    split: str | None = None

    def others(self) -> tuple[str, ...]:
        """Return the names of all columns but the inputs."""
        named = (self.label, self.client, self.time, self.split)
        return tuple(name for name in named if name is not None)


@dataclass(frozen=True, eq=False)
class Coded:
    """A column by its distinct values: row i holds `values[codes[i]]`, and code -1 is a missing value.

    Values are sorted and distinct. A value is a number, a text, or a row of numbers (a label per token, several flags).
    """

    codes: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, column: np.ndarray) -> Coded:
        """Encode whole numbers or texts; floats without a fraction count as whole numbers, NaN as missing."""
        if column.dtype.kind == "f":
            is_missing = np.isnan(column.reshape(len(column), -1)).any(axis=1)
            whole = np.nan_to_num(column, nan=0.0, posinf=np.inf, neginf=-np.inf)
            is_whole = bool(np.isfinite(whole).all()) and bool((whole == np.floor(whole)).all())
            column = whole.astype(np.int64) if is_whole else whole
        else:
            is_missing = np.zeros(len(column), bool)
        values, present_codes = _distinct(column[~is_missing])
        codes = np.full(len(column), -1, np.int64)
        codes[~is_missing] = present_codes
        return cls(codes, values)

    @classmethod
    def joined(cls, parts: Sequence[Coded]) -> Coded:
        """Concatenate columns; whole numbers become texts if another part has texts."""
        if len(parts) == 1:
            return parts[0]
        all_values = [part.values for part in parts if len(part.values)]
        if not all_values:
            return cls(np.concatenate([part.codes for part in parts]), np.empty(0, np.int64))
        if len({values.dtype.kind for values in all_values} - {"i", "u", "b"}) > 0:
            all_values = [values.astype(str) for values in all_values]
        values, new_codes = _distinct(np.concatenate(all_values))
        new_codes_of_parts = np.split(new_codes, np.cumsum([len(part.values) for part in parts])[:-1])
        codes = [_renumbered(part.codes, new) for part, new in zip(parts, new_codes_of_parts, strict=True)]
        return cls(np.concatenate(codes), values)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.codes)

    def at(self, rows: np.ndarray) -> Coded:
        """Return some rows, with the same codes."""
        return Coded(self.codes[rows], self.values)

    def compact(self) -> Coded:
        """Return the same rows without values that do not occur."""
        is_used = np.bincount(self.codes[self.codes >= 0], minlength=len(self.values)) > 0
        return Coded(_renumbered(self.codes, np.cumsum(is_used) - 1), self.values[is_used])

    def value_at(self, row: int) -> Any:
        """Return the value of a row as a Python object; None if it is missing."""
        code = self.codes[row]
        return None if code < 0 else self.values[code].tolist()


@dataclass(frozen=True, eq=False)
class Facts:
    """Label, client, time and split of every example of a source; None where the source has no such column."""

    labels: Coded
    clients: Coded | None = None
    times: np.ndarray | None = None
    splits: Coded | None = None


class Source(Protocol):
    """One file or folder of examples."""

    @property
    def where(self) -> str:
        """The path, for messages."""
        ...

    def facts(self) -> Facts:
        """Return label, client, time and split of every example."""
        ...

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        """Return shape and type of one input."""
        ...

    def chunks(self) -> Iterator[np.ndarray]:
        """Yield the inputs in order, at most CHUNK at once, with NaN for missing numbers."""
        ...

    def input_name(self, position: int) -> str:
        """Return the file's name for a position of the flattened input, for messages."""
        ...


def _distinct(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted distinct values of a column and the code of each entry."""
    values, codes = np.unique(column, return_inverse=True, axis=0 if column.ndim > 1 else None)
    return values, codes.reshape(-1)


def _renumbered(codes: np.ndarray, new_codes: np.ndarray) -> np.ndarray:
    """Replace each code by its new code; -1 stays -1."""
    renumbered: np.ndarray = np.append(new_codes, -1)[codes]  # index -1 is the appended entry
    return renumbered
