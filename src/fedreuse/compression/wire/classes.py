"""Compression of rows of bytes in classes: similar rows share one table of codes.

Both ends know the lengths of the rows, and from them the number of classes: one per 2048 bytes, at most 8 and at most
the number of rows. A single class is compressed as it is. Otherwise the class of each row (a byte, from 0) comes first,
compressed, then the rows of each class in order, each class compressed. The sender chooses the class of each row.
"""

from __future__ import annotations

import numpy as np

from fedreuse.compression.wire.entropy import ByteSource, squeeze
from fedreuse.core.errors import WireError

__all__ = ["code_rows", "count_classes", "expand_rows"]

_CLASS_BYTES = 2048
_MAX_CLASSES = 8


def count_classes(lengths: np.ndarray) -> int:
    """Return the number of classes for rows of these lengths."""
    return max(1, min(_MAX_CLASSES, len(lengths), int(lengths.sum()) // _CLASS_BYTES))


def code_rows(data: np.ndarray, lengths: np.ndarray, keys: np.ndarray) -> bytes:
    """Encode concatenated rows of bytes; rows with similar keys share a class, and classes have similar sizes."""
    num_classes = count_classes(lengths)
    if num_classes == 1:
        return squeeze(data)
    order = np.argsort(keys, kind="stable")
    ends = np.cumsum(lengths[order])
    classes = np.empty(len(lengths), np.uint8)
    classes[order] = np.maximum(ends - 1, 0) * num_classes // len(data)  # equal shares of the bytes in key order
    grouped = _reorder(data, lengths, np.argsort(classes, kind="stable"))
    cuts = np.cumsum(_class_lengths(classes, lengths, num_classes))[:-1]
    return b"".join([squeeze(classes), *(squeeze(part) for part in np.split(grouped, cuts))])


def expand_rows(source: ByteSource, lengths: np.ndarray) -> np.ndarray:
    """Decode the rows."""
    num_classes = count_classes(lengths)
    if num_classes == 1:
        return source.expand(int(lengths.sum()))
    classes = source.expand(len(lengths))
    if classes.max() >= num_classes:
        raise WireError(f"{source.name}: a row of class {classes.max()}, but there are {num_classes} classes")
    parts = [source.expand(int(length)) for length in _class_lengths(classes, lengths, num_classes)]
    order = np.argsort(classes, kind="stable")
    return _reorder(np.concatenate(parts), lengths[order], np.argsort(order))  # the inverse permutation


def _class_lengths(classes: np.ndarray, lengths: np.ndarray, num_classes: int) -> np.ndarray:
    sums: np.ndarray = np.bincount(classes, lengths, num_classes).astype(np.int64)
    return sums


def _reorder(data: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> np.ndarray:
    ends = np.cumsum(lengths)
    spans = zip((ends - lengths)[order].tolist(), ends[order].tolist(), strict=True)
    whole = data.tobytes()  # slicing and joining bytes is faster than arrays
    return np.frombuffer(b"".join([whole[start:stop] for start, stop in spans]), np.uint8)
