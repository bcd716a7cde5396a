"""Atomic file writes: to a temporary file in the same folder, flushed to disk, then renamed."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["beside", "clear_leftovers", "is_alive", "sync_folder", "write_whole"]

_OLD_SECONDS = 60.0


def write_whole(
    path: Path, *pieces: bytes | memoryview | Iterable[bytes | memoryview], is_private: bool = False
) -> None:
    """Write pieces of bytes to a file atomically; a full disk or a killed process leaves the old file unchanged.

    Args:
        path: The file.
        pieces: Its content, written one after another; a piece may be an iterable of pieces, which need not fit into
            memory together.
        is_private: Whether only the owner may read the file.
    """
    partial = beside(path)
    try:
        flags, mode = os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if is_private else 0o666
        with os.fdopen(os.open(partial, flags, mode), "wb") as file:
            for piece in pieces:
                file.writelines([piece] if isinstance(piece, bytes | memoryview) else piece)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def beside(path: Path) -> Path:
    """Return the path of the temporary file; the process id keeps concurrent writers apart."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def clear_leftovers(folder: Path) -> None:
    """Remove temporary files that are more than a minute old and whose process no longer runs."""
    for partial in folder.glob(".*.part"):
        process = partial.name.removesuffix(".part").rpartition(".")[2]
        with suppress(OSError):
            is_old = time.time() - partial.stat().st_mtime > _OLD_SECONDS
            if is_old and process.isdecimal() and not is_alive(int(process)):
                partial.unlink()


def sync_folder(folder: Path) -> None:
    """Make new names in a folder as durable as the content of their files."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_alive(process: int) -> bool:
    """Return whether a process runs on this machine."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # no permission to signal it: a process of another user
        return True
    return True
