"""Labels of files: words or whole numbers as classes from 0, a class per token, numbers, or several flags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from fedreuse.core.errors import DataError, and_others
from fedreuse.learning.files.pool import LEFT_OUT, TRAIN
from fedreuse.learning.targets import IGNORED

if TYPE_CHECKING:
    from fedreuse.learning.files.pool import Pool

__all__ = ["SEPARATOR", "ClassSetting", "FileLabels", "encode", "flags", "numbers", "tokens"]

ClassSetting = int | tuple[str, ...] | tuple[int, ...] | None
"""A number of classes, their names in order, or None: those that occur in training, sorted."""
FileLabels = Literal["tokens", "numbers", "flags"] | None
"""Kind of labels: a class per token, numbers to predict, several flags (rows of an array, or names joined by
`SEPARATOR`), or None: one class."""
SEPARATOR = "|"


def encode(pool: Pool, splits: np.ndarray, classes: ClassSetting) -> tuple[np.ndarray, int]:
    """Return the class numbers of all examples (-1 where left out), and the number of classes.

    Raises:
        DataError: Labels are rows or fractions, a label is not among the classes, or there is one class only.
    """
    values = pool.labels.values
    if values.ndim > 1:
        raise DataError(
            f"{pool.located[0].source.where}: labels are {_form(values)}, but a class is one number or name; set "
            "task.labels to tokens, numbers or flags"
        )
    if values.dtype.kind == "f":
        odd = values[~np.isfinite(values) | (values != np.floor(values))][0]
        raise DataError(
            f"{pool.located[0].source.where}: a label is {odd}, but labels are whole numbers or names of classes; "
            "name another task.label_column, make classes of the values, or predict them with task.labels: numbers"
        )
    known = _known_classes(pool, splits, classes)
    number_of = {value: number for number, value in enumerate(known)}
    numbers_of_values = [number_of.get(value, -1) for value in values.astype(str).tolist()]
    labels = np.append(np.array(numbers_of_values, np.int64), -1)[pool.labels.codes]
    is_unknown = (labels < 0) & (splits != LEFT_OUT)
    if is_unknown.any():
        example = int(np.argmax(is_unknown))
        raise DataError(
            f"{pool.row_of(example)} has the label {pool.labels.value_at(example)!r}, which is none of the "
            f"{len(known)} classes ({_listed(known)}){and_others(int(np.count_nonzero(is_unknown)) - 1)}; "
            "correct it, or set task.classes"
        )
    return labels, len(known)


def numbers(pool: Pool) -> tuple[np.ndarray, int]:
    """Return the numbers to predict (float32; 0 where left out), and their count per example.

    Raises:
        DataError: A label is not a number.
    """
    try:
        values = _with_blank(pool.labels.values.astype(np.float64), 0.0)
    except ValueError as error:
        raise DataError(
            f"{pool.located[0].source.where}: task.labels is numbers, but a label is not a number ({error}); name "
            "another task.label_column, or drop task.labels to have classes"
        ) from None
    return values[pool.labels.codes].astype(np.float32), values.shape[1] if values.ndim > 1 else 1


def tokens(pool: Pool, classes: ClassSetting) -> tuple[np.ndarray, int]:
    """Return a class per token (IGNORED where none counts), and the number of classes; ranges are checked later.

    Raises:
        DataError: Labels are not rows of whole numbers, or the number of tokens is not set.
    """
    where, values = pool.located[0].source.where, pool.labels.values
    if values.ndim != 2 or values.dtype.kind not in "iu":
        raise DataError(
            f"{where}: task.labels is tokens, but labels are {_form(values)}; write one row of whole numbers per "
            f"example ({IGNORED} where none counts) into an npz or npy array"
        )
    if not isinstance(classes, int):
        raise DataError(f"{where}: the number of tokens cannot be seen in some of them; set task.classes")
    return _with_blank(values.astype(np.int64), IGNORED)[pool.labels.codes], classes


def flags(pool: Pool, splits: np.ndarray, classes: ClassSetting) -> tuple[np.ndarray, int]:
    """Return truth values (examples x classes), and the number of classes; a text may name any number of them.

    Raises:
        DataError: A name is not among the classes, no training example has one, or rows are not 0 and 1.
    """
    if pool.labels.values.ndim > 1:
        return _flag_rows(pool, classes)
    names_of_values = [[name for name in str(value).split(SEPARATOR) if name] for value in pool.labels.values]
    if classes is None:
        used = np.unique(pool.labels.codes[(splits == TRAIN) & (pool.labels.codes >= 0)])
        known = sorted({name for code in used.tolist() for name in names_of_values[code]})
    else:
        known = [str(number) for number in (range(classes) if isinstance(classes, int) else classes)]
    number_of = {name: number for number, name in enumerate(known)}
    table = np.zeros((len(names_of_values) + 1, len(known)), bool)  # the last row is that of code -1
    for code, names in enumerate(names_of_values):
        for name in names:
            if name in number_of:
                table[code, number_of[name]] = True
                continue
            has_name = (pool.labels.codes == code) & (splits != LEFT_OUT)
            if has_name.any():
                raise DataError(
                    f"{pool.row_of(int(np.argmax(has_name)))} has the label {name!r}, which is none of the "
                    f"{len(known)} classes ({_listed(known)}); correct it, or set task.classes"
                )
    if not known:
        raise DataError(f"{pool.located[0].source.where}: no training example has a label; check task.label_column")
    return table[pool.labels.codes], len(known)


def _flag_rows(pool: Pool, classes: ClassSetting) -> tuple[np.ndarray, int]:
    """Return flags that are written as rows of 0 and 1."""
    values = pool.labels.values
    expected = classes if isinstance(classes, int) else values.shape[1] if classes is None else len(classes)
    if expected != values.shape[1] or not np.isin(values, (0, 1)).all():
        raise DataError(
            f"{pool.located[0].source.where}: labels are {_form(values)}, but task.labels is flags of {expected} "
            "classes; write a row with 0 or 1 for each class, or correct task.classes"
        )
    return _with_blank(values.astype(bool), False)[pool.labels.codes], expected


def _known_classes(pool: Pool, splits: np.ndarray, classes: ClassSetting) -> list[str]:
    """Return the classes in order, as texts."""
    if isinstance(classes, int):
        return [str(number) for number in range(classes)]
    if classes is not None:
        return [str(value) for value in classes]
    used = np.unique(pool.labels.codes[splits == TRAIN])
    if len(used) < 2:
        raise DataError(
            f"{pool.located[0].source.where}: all training examples have the label {pool.labels.values[used[0]]!r}; "
            "there must be at least two classes: check task.label_column, or set task.classes if other clients have "
            "the others"
        )
    known: list[str] = pool.labels.values[used].astype(str).tolist()
    return known


def _with_blank(values: np.ndarray, blank: float) -> np.ndarray:
    """Append the value of code -1, which indexes the last entry."""
    return np.concatenate([values, np.full((1, *values.shape[1:]), blank, values.dtype)])


def _form(values: np.ndarray) -> str:
    return f"{values.dtype} of shape {values.shape[1:]} per example"


def _listed(known: list[str]) -> str:
    return ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
