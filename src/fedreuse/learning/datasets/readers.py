"""Readers of the published file formats: idx, MedMNIST npz and CIFAR binary."""

from __future__ import annotations

import gzip
import zlib
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.bounded import read_arrays
from fedreuse.core.errors import DataError
from fedreuse.learning.data import Split

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_cifar_binary", "read_idx", "read_medmnist"]

_IDX_BYTES = b"\0\0\x08"  # the type byte 8 means unsigned bytes
_CIFAR_SHAPE = (3, 32, 32)
_CIFAR_PIXELS = 3 * 32 * 32
_LARGEST = 64
"""Largest array that is read, in multiples of the expected one: images of eight times the width and height."""
_LONGEST_HEADER = 1 << 16
"""Longest header of an npy file."""


def read_idx(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Return the bytes of an idx file, gzipped or not, as an array of this shape.

    Raises:
        DataError: The file is not idx, truncated, or of another shape.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            header = file.read(4)
            if len(header) < 4 or header[:3] != _IDX_BYTES:
                raise DataError(f"{path.name}: begins with {header.hex() or 'no bytes'}, expected an idx file of bytes")
            found = tuple(np.frombuffer(file.read(4 * header[3]), ">u4").tolist())
            if found != shape:
                raise DataError(f"{path.name}: holds {_times(found)} values, expected {_times(shape)}")
            wanted = int(np.prod(shape))
            content = file.read(wanted + 1)  # one more byte, to notice a file that is too long
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
        raise DataError(f"{path.name}: truncated or damaged ({error}), expected {_times(shape)} values") from None
    if len(content) != wanted:
        state = "truncated, only" if len(content) < wanted else "too long, more than"
        raise DataError(f"{path.name}: {state} {min(len(content), wanted)} values found, expected {wanted}")
    return np.frombuffer(content, np.uint8).reshape(shape)


def read_medmnist(path: Path, part: str, examples: int, shape: tuple[int, int, int]) -> Split:
    """Return one part (train, val or test) of a MedMNIST npz, with channels first.

    Raises:
        DataError: The file is damaged, or its arrays have other shapes.
    """
    channels, height, width = shape
    images = _member(path, f"{part}_images", (examples, height, width, channels))
    labels = _member(path, f"{part}_labels", (examples, 1))
    return Split(np.ascontiguousarray(images.transpose(0, 3, 1, 2)), labels[:, 0].astype(np.int64))


def read_cifar_binary(path: Path, examples: int, num_label_bytes: int) -> Split:
    """Return the images and labels of one CIFAR file of fixed records; the last label byte is the fine label.

    Raises:
        DataError: The file has another size.
    """
    record = num_label_bytes + _CIFAR_PIXELS
    if (found := path.stat().st_size) != examples * record:
        raise DataError(
            f"{path.name}: {found} bytes found, expected {examples * record} ({examples} records of {record})"
        )
    records = np.fromfile(path, np.uint8).reshape(examples, record)
    images = np.ascontiguousarray(records[:, num_label_bytes:]).reshape(examples, *_CIFAR_SHAPE)
    return Split(images, records[:, num_label_bytes - 1].astype(np.int64))


def _member(path: Path, key: str, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = read_arrays(path, [key], max_bytes=_LARGEST * prod(shape) + _LONGEST_HEADER)[key]
    except KeyError:
        raise DataError(f"{path.name}: has no {key}, which a MedMNIST file has") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path.name}: truncated or damaged ({error}), expected a MedMNIST npz file") from None
    if array.shape != shape or array.dtype != np.uint8:
        raise DataError(
            f"{path.name}: {key} is {_times(array.shape)} of {array.dtype}, expected {_times(shape)} of uint8"
        )
    return array


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(str(size) for size in shape) or "no"
