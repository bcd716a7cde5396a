"""Labels as files have them: words or whole numbers as classes from 0, a class per token, numbers, several flags."""

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
"""What labels are: a class per token, numbers to predict, several flags (rows of an array, or names with `SEPARATOR`
between), or None: one class."""
SEPARATOR = "|"


def numbers(pool: Pool, splits: np.ndarray) -> tuple[np.ndarray, int]:
    """The numbers to predict (float32; 0 where left out), and how many there are per example."""
    try:
        values = _with_blank(pool.labels.values.astype(np.float64), 0.0)
    except ValueError as error:
        raise DataError(
            f"{pool.located[0].source.where}: task.labels is numbers, but a label is none ({error}); name another "
            "task.label_column, or drop task.labels to have classes"
        ) from None
    del splits  # every row has its own number
    return values[pool.labels.codes].astype(np.float32), values.shape[1] if values.ndim > 1 else 1


def tokens(pool: Pool, splits: np.ndarray, classes: ClassSetting) -> tuple[np.ndarray, int]:
    """A class per token (IGNORED where none counts), and how many classes there are; their range is checked later."""
    del splits  # every example has a row of its own
    where, values = pool.located[0].source.where, pool.labels.values
    if values.ndim != 2 or values.dtype.kind not in "iu":
        raise DataError(
            f"{where}: task.labels is tokens, but labels are {_told(values)}; write one row of whole numbers per "
            f"example ({IGNORED} where none counts) into an npz or npy array"
        )
    if not isinstance(classes, int):
        raise DataError(f"{where}: how many tokens there are cannot be seen in some of them; set task.classes")
    return _with_blank(values.astype(np.int64), IGNORED)[pool.labels.codes], classes


def flags(pool: Pool, splits: np.ndarray, classes: ClassSetting) -> tuple[np.ndarray, int]:
    """Which of the classes each example has, as truth values; a text may name none, one or several of them."""
    if pool.labels.values.ndim > 1:
        return _flag_rows(pool, classes)
    said = [[name for name in str(value).split(SEPARATOR) if name] for value in pool.labels.values]
    if classes is None:
        used = np.unique(pool.labels.codes[(splits == TRAIN) & (pool.labels.codes >= 0)])
        known = sorted({name for place in used.tolist() for name in said[place]})
    else:
        known = [str(number) for number in (range(classes) if isinstance(classes, int) else classes)]
    table = np.zeros((len(said) + 1, len(known)), bool)
    place_of = {name: number for number, name in enumerate(known)}
    for row, names in enumerate(said):
        for name in names:
            if name in place_of:
                table[row, place_of[name]] = True
            elif ((pool.labels.codes == row) & (splits != LEFT_OUT)).any():
                example = int(np.argmax((pool.labels.codes == row) & (splits != LEFT_OUT)))
                raise DataError(
                    f"{pool.place_of(example)} has the label {name!r}, which is none of the {len(known)} classes "
                    f"({_listed(known)}); correct it, or set task.classes"
                )
    if not known:
        raise DataError(f"{pool.located[0].source.where}: no training example has a label; check task.label_column")
    return table[pool.labels.codes], len(known)


def _flag_rows(pool: Pool, classes: ClassSetting) -> tuple[np.ndarray, int]:
    """Flags that are written as rows of 0 and 1."""
    values = pool.labels.values
    known = classes if isinstance(classes, int) else values.shape[1] if classes is None else len(classes)
    if known != values.shape[1] or not np.isin(values, (0, 1)).all():
        raise DataError(
            f"{pool.located[0].source.where}: labels are {_told(values)}, but task.labels is flags of {known} classes; "
            "write a row with 0 or 1 for each class, or correct task.classes"
        )
    return _with_blank(values.astype(bool), False)[pool.labels.codes], known


def _with_blank(values: np.ndarray, blank: float) -> np.ndarray:
    """The values and behind them one that code -1 stands for."""
    return np.concatenate([values, np.full((1, *values.shape[1:]), blank, values.dtype)])


def _told(values: np.ndarray) -> str:
    return f"{values.dtype} of shape {values.shape[1:]} per example"


def _listed(known: list[str]) -> str:
    return ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")


def encode(pool: Pool, splits: np.ndarray, classes: ClassSetting) -> tuple[np.ndarray, int]:
    """Class numbers of all examples (-1 where left out), and how many classes there are."""
    values = pool.labels.values
    if values.ndim > 1:
        raise DataError(
            f"{pool.located[0].source.where}: labels are {_told(values)}, but a class is one number or name; set "
            "task.labels to tokens, numbers or flags, whichever they are"
        )
    if values.dtype.kind == "f":
        odd = values[values != np.floor(values)][0]
        raise DataError(
            f"{pool.located[0].source.where}: a label is {odd}, but labels are whole numbers or names of classes; "
            "name another task.label_column, make classes of the values, or predict them with task.labels: numbers"
        )
    known = _known(pool, splits, classes)
    place_of = {value: number for number, value in enumerate(known)}
    plain = [place_of.get(value, -1) for value in values.astype(str).tolist()]
    labels = np.append(np.array(plain, np.int64), -1)[pool.labels.codes]
    is_beyond = (labels < 0) & (splits != LEFT_OUT)
    if is_beyond.any():
        example = int(np.argmax(is_beyond))
        raise DataError(
            f"{pool.place_of(example)} has the label {pool.labels.value_at(example)!r}, which is none of the "
            f"{len(known)} classes ({_listed(known)}){and_others(int(np.count_nonzero(is_beyond)) - 1)}; "
            "correct it, or set task.classes"
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
