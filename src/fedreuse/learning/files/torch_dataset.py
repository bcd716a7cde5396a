"""A torch Dataset as a source: a sequence of (input, label) pairs, or of (input, label, client)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.learning.files.source import Coded, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TorchSource"]


@dataclass(frozen=True, eq=False)
class TorchSource:
    """A dataset with `len` and `[i]`; its items are read once, into memory."""

    where: str
    dataset: Any

    def facts(self) -> Facts:
        """Return the labels, and the clients if items have three parts."""
        has_clients = all(len(item) > 2 for item in self._items)
        return Facts(self._column(1), self._column(2) if has_clients else None)

    def form(self) -> tuple[tuple[int, ...], np.dtype]:
        """Return shape and type of the first input."""
        first = _array(self._items[0][0])
        return first.shape, first.dtype

    def chunks(self) -> Iterator[np.ndarray]:
        """Yield the inputs one by one."""
        shape, _ = self.form()
        for row, item in enumerate(self._items):
            array = _array(item[0])
            if array.shape != shape:
                raise DataError(
                    f"{self.where}: item {row} has the shape {array.shape}, item 0 {shape}; give all one shape"
                )
            yield array[None]

    def input_name(self, position: int) -> str:
        """Return the position in a flattened input."""
        return f"position {position} of an input"

    def _column(self, part: int) -> Coded:
        values = (item[part] for item in self._items)
        return Coded.of(np.array([value.item() if hasattr(value, "item") else value for value in values]))

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


def _array(value: Any) -> np.ndarray:
    """Convert a tensor, an array, a PIL image or a number to an array; images get channels first."""
    array = np.asarray(value)
    is_image = hasattr(value, "getbands")  # of PIL, which is not imported for this
    if is_image:
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
    return array.astype(np.float32) if array.dtype == np.float64 else array
