"""Large arrays in unlinked, mapped files instead of memory, so that a process with little memory can hold many.

The pages of such a file belong to the page cache: the system writes them to disk and drops them when memory is needed.
The file has no name, so nothing is left behind, however the process ends.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.core.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

__all__ = ["buffer_of", "is_large", "is_mapped", "map_file", "open_spool", "vacant", "write_pieces"]

_LARGE_BYTES = int(os.environ.get("FEDREUSE_LARGE_BYTES", 64 << 20))
"""Arrays and messages of at least this size are spooled; smaller ones stay in memory."""
_PIECE_BYTES = 8 << 20
"""Bytes that are written at once, so that the copy of an array never needs another array."""


def is_large(num_bytes: int) -> bool:
    """Return whether an array or message of this size belongs into a file."""
    return num_bytes >= _LARGE_BYTES


def open_spool() -> BinaryIO:
    """Return a new file without a name, in `FEDREUSE_SPOOL`, else in /var/tmp (/tmp is often memory).

    Raises:
        RunError: The folder cannot be written.
    """
    folder = os.environ.get("FEDREUSE_SPOOL") or ("/var/tmp" if Path("/var/tmp").is_dir() else None)
    try:
        return tempfile.TemporaryFile(dir=folder, prefix="fedreuse-")
    except OSError as error:
        raise RunError(
            f"no file for large arrays could be made in {folder} ({error}); set FEDREUSE_SPOOL to a folder on a disk "
            "with enough space"
        ) from None


def write_pieces(file: BinaryIO, pieces: Iterable[bytes | memoryview]) -> int:
    """Write pieces one after another and return their number of bytes.

    Raises:
        RunError: The disk is full.
    """
    written = 0
    try:
        for piece in pieces:
            view = memoryview(piece).cast("B")
            for start in range(0, len(view), _PIECE_BYTES):
                file.write(view[start : start + _PIECE_BYTES])
            written += len(view)
        file.flush()
    except OSError as error:
        raise _full(error) from None
    return written


def map_file(file: BinaryIO) -> memoryview:
    """Return the content of a file as read-only memory; the mapping stays valid after the file is closed."""
    if not os.fstat(file.fileno()).st_size:  # an empty file cannot be mapped
        return memoryview(b"")
    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def vacant(size: int, dtype: np.dtype) -> np.ndarray:
    """Return an array to be filled: in memory, or if it is large in a mapped file, with the same bits afterwards."""
    num_bytes = size * dtype.itemsize
    if not is_large(num_bytes):
        return np.empty(size, dtype)
    with open_spool() as file:
        try:
            os.posix_fallocate(file.fileno(), 0, num_bytes)  # a full disk is noticed here, not by a signal
        except OSError as error:
            raise _full(error) from None
        return np.frombuffer(mmap.mmap(file.fileno(), num_bytes), dtype)


def _full(error: OSError) -> RunError:
    return RunError(
        f"large arrays could not be written ({error}); free some disk space, or set FEDREUSE_SPOOL to another folder"
    )


def is_mapped(array: np.ndarray) -> bool:
    """Return whether an array is a view of a mapped file."""
    return isinstance(buffer_of(array), mmap.mmap)


def buffer_of(array: np.ndarray) -> Any:
    """Return the object whose memory an array is a view of, through views of views; None if it has its own."""
    base: Any = array
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return base
