"""Files that are there whole or not at all: written beside their place, flushed, renamed."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["YAML_LOADER", "beside", "clear_leftovers", "write_whole"]

YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The safe loader; the one of libyaml, where it is, reads the same ten times as fast."""

_OLD_SECONDS = 60.0


def write_whole(path: Path, *pieces: bytes | memoryview, is_private: bool = False) -> None:
    """Put these bytes, one piece after the other, where `path` says; what is private others cannot read.

    Whatever interrupts the writer, a full disk or a killed process, the old file stays as it was.
    """
    partial = beside(path)
    try:
        flags, mode = os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if is_private else 0o666
        with os.fdopen(os.open(partial, flags, mode), "wb") as file:
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


def clear_leftovers(folder: Path) -> None:
    """Remove unfinished files whose writer no longer runs and that are more than a minute old."""
    for partial in folder.glob(".*.part"):
        process = partial.name.removesuffix(".part").rpartition(".")[2]
        with suppress(OSError):
            is_old = time.time() - partial.stat().st_mtime > _OLD_SECONDS
            if is_old and process.isdecimal() and not _is_alive(int(process)):
                partial.unlink()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
