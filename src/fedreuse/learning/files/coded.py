"""A column such as labels or clients, by its distinct values: numbers, and what each stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Coded"]


@dataclass(frozen=True, eq=False)
class Coded:
    """`values[codes[i]]` is what stands in row i; a code of -1 means nothing. Values are sorted and distinct.

    A value is a number or a text, or a row of numbers (a label per token, several flags).
    """

    codes: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, column: np.ndarray) -> Coded:
        """From whole numbers or texts; fractions that are whole count as whole numbers, NaN as missing."""
        if column.dtype.kind == "f":
            is_missing = np.isnan(column.reshape(len(column), -1)).any(axis=1)
            whole = np.nan_to_num(column, nan=0.0, posinf=np.inf, neginf=-np.inf)
            column = whole.astype(np.int64) if (whole == np.floor(whole)).all() else whole
        else:
            is_missing = np.zeros(len(column), bool)
        values, codes = _distinct(column[~is_missing])
        spread = np.full(len(column), -1, np.int64)
        spread[~is_missing] = codes
        return cls(spread, values)

    @classmethod
    def constant(cls, value: str, count: int) -> Coded:
        """The same text in every row."""
        return cls(np.zeros(count, np.int64), np.array([value]))

    @classmethod
    def joined(cls, parts: Sequence[Coded]) -> Coded:
        """One column after the other; whole numbers beside texts become texts."""
        if len(parts) == 1:
            return parts[0]
        filled = [part.values for part in parts if len(part.values)]
        if not filled:
            return cls(np.concatenate([part.codes for part in parts]), np.empty(0, np.int64))
        if len({values.dtype.kind for values in filled} - {"i", "u", "b"}) > 0:
            filled = [values.astype(str) for values in filled]
        values, places = _distinct(np.concatenate(filled))
        known = np.split(places, np.cumsum([len(part.values) for part in parts])[:-1])
        codes = [_renumbered(part.codes, to) for part, to in zip(parts, known, strict=True)]
        return cls(np.concatenate(codes), values)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.codes)

    def at(self, places: np.ndarray) -> Coded:
        """Some rows, under the same numbers."""
        return Coded(self.codes[places], self.values)

    def compact(self) -> Coded:
        """The same rows with the values that occur, and no others."""
        is_used = np.bincount(self.codes[self.codes >= 0], minlength=len(self.values)) > 0
        return Coded(_renumbered(self.codes, np.cumsum(is_used) - 1), self.values[is_used])

    def value_at(self, row: int) -> Any:
        """What stands in a row, for messages."""
        code = self.codes[row]
        return None if code < 0 else self.values[code].tolist()


def _distinct(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values that occur, sorted, and the place of each entry among them."""
    values, places = np.unique(column, return_inverse=True, axis=0 if column.ndim > 1 else None)
    return values, places.reshape(-1)


def _renumbered(codes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Codes under new numbers; missing ones stay missing."""
    renumbered: np.ndarray = np.append(numbers, -1)[codes]
    return renumbered
