"""Files that are there whole or not at all: written beside their place, flushed, renamed."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["beside", "write_whole"]


def write_whole(path: Path, *pieces: bytes | memoryview) -> None:
    """Put these bytes, one piece after the other, where `path` says.

    Whatever interrupts the writer, a full disk or a killed process, the old file stays as it was.
    """
    partial = beside(path)
    try:
        with partial.open("wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def beside(path: Path) -> Path:
    """Where a file grows until it is whole; each process has a place of its own."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")
