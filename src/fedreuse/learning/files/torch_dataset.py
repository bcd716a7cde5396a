"""Any torch Dataset: a sequence of (input, label) pairs, or of (input, label, client)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.learning.files.coded import Coded
from fedreuse.learning.files.source import Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TorchSource"]


@dataclass(frozen=True, eq=False)
class TorchSource:
    """A dataset with `len` and `[i]`; its items are read once, into memory."""

    where: str
    dataset: Any

    def facts(self) -> Facts:
        """Labels, and clients where items have three parts."""
        labels = Coded.of(np.array([_plain(item[1]) for item in self._items]))
        has_clients = all(len(item) > 2 for item in self._items)
        return Facts(labels, Coded.of(np.array([_plain(item[2]) for item in self._items])) if has_clients else None)

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        """That of the first input."""
        first = _array(self._items[0][0])
        return first.shape, first.dtype

    def chunks(self) -> Iterator[np.ndarray]:
        """Every input once."""
        shape, _ = self.form()
        for row, item in enumerate(self._items):
            found = _array(item[0])
            if found.shape != shape:
                raise DataError(
                    f"{self.where}: item {row} has the shape {found.shape}, item 0 {shape}; give all one shape"
                )
            yield found[None]

    def input_name(self, place: int) -> str:
        """The place in a flattened input."""
        return f"place {place} of an input"

    @cached_property
    def _items(self) -> list[Any]:
        try:
            items = [self.dataset[number] for number in range(len(self.dataset))]
        except TypeError as error:
            raise DataError(
                f"{self.where}: a dataset with a length and items by number is needed ({error}); an iterable one can "
                "be written to Parquet first"
            ) from None
        for number, item in enumerate(items):
            if not isinstance(item, tuple | list) or len(item) not in (2, 3):
                raise DataError(
                    f"{self.where}: item {number} is {type(item).__name__}; (input, label) or (input, label, client) "
                    "is needed"
                )
        if not items:
            raise DataError(f"{self.where}: the dataset is empty")
        return items


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _array(value: Any) -> np.ndarray:
    """A tensor, an array, a PIL image (channels last) or a number as an array."""
    array = np.asarray(value)
    is_picture = hasattr(value, "getbands")
    if is_picture:
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
    return array.astype(np.float32) if array.dtype == np.float64 else array
