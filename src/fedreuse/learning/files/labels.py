"""Labels as files have them, numbers or words, as class numbers from 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import DataError
from fedreuse.learning.files.pool import LEFT_OUT, TRAIN

if TYPE_CHECKING:
    from fedreuse.learning.files.pool import Pool

__all__ = ["ClassSetting", "encode"]

ClassSetting = int | tuple[str, ...] | tuple[int, ...] | None
"""A number of classes, their names in order, or None: those that occur in training, sorted."""


def encode(pool: Pool, splits: np.ndarray, classes: ClassSetting) -> tuple[np.ndarray, int]:
    """Class numbers of all examples (-1 where left out), and how many classes there are."""
    values = pool.labels.values
    if values.dtype.kind == "f":
        odd = values[values != np.floor(values)][0]
        raise DataError(
            f"{pool.located[0].source.where}: a label is {odd}, but labels are whole numbers or names of classes; "
            "name another task.label_column, or make classes of the values"
        )
    known = _known(pool, splits, classes)
    place_of = {value: number for number, value in enumerate(known)}
    plain = [place_of.get(value, -1) for value in values.astype(str).tolist()]
    labels = np.append(np.array(plain, np.int64), -1)[pool.labels.codes]
    is_beyond = (labels < 0) & (splits != LEFT_OUT)
    if is_beyond.any():
        example = int(np.argmax(is_beyond))
        told = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
        raise DataError(
            f"{pool.place_of(example)} has the label {pool.labels.value_at(example)!r}, which is none of the "
            f"{len(known)} classes ({told}), and so have {np.count_nonzero(is_beyond) - 1} others; correct them, or "
            "set task.classes"
        )
    return labels, len(known)


def _known(pool: Pool, splits: np.ndarray, classes: ClassSetting) -> list[str]:
    """The classes in order, as texts."""
    if isinstance(classes, int):
        return [str(number) for number in range(classes)]
    if classes is not None:
        return [str(value) for value in classes]
    used = np.unique(pool.labels.codes[splits == TRAIN])
    if len(used) < 2:
        raise DataError(
            f"{pool.located[0].source.where}: all training examples have the label {pool.labels.values[used[0]]!r}; "
            "there must be two classes at least: check task.label_column, or set task.classes if others come elsewhere"
        )
    known: list[str] = pool.labels.values[used].astype(str).tolist()
    return known
