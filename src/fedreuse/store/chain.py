"""Append-only logs: one JSON object per line, each with the hash of the line before it.

A line that is changed, removed or inserted breaks every later hash. The owner of a log can write all of it anew; what
cannot be changed any more is a head (the hash of the last line) that others hold.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, BinaryIO

from fedreuse.core.bounded import MAX_LIST_BYTES, parse_json, read_bytes
from fedreuse.core.errors import RunDirectoryError
from fedreuse.store.archive import opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["BEFORE", "append", "head_of", "heads_of", "read_chain"]

BEFORE = "before"
"""The key of the hash of the line before; that of the first line is empty."""


def append(
    path: Path, choose: Callable[[Sequence[Mapping[str, Any]]], Sequence[Mapping[str, Any]]], mode: int = 0o666
) -> None:
    """Add entries to a log, durably; of several processes one writes at a time.

    Args:
        path: The file; it is created if absent.
        choose: Function of the entries so far that returns those to add.
        mode: Permissions of a new file, less the umask.

    Raises:
        RunDirectoryError: The log is damaged.
        OSError: It cannot be written.
    """
    with _locked(path, mode) as file:
        lines = _whole_lines(path)
        known = _parsed(path, lines)
        before = _head(lines)
        added = b""
        for entry in choose(known):
            line = json.dumps({**entry, BEFORE: before}).encode()
            before = sha256(line).hexdigest()
            added += line + b"\n"
        if added:
            file.truncate(sum(len(line) + 1 for line in lines))  # a line that a crash cut was never reported
            file.write(added)
            file.flush()
            os.fsync(file.fileno())


def read_chain(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a log, without the hashes; empty without a log.

    Raises:
        RunDirectoryError: A line was changed, removed or inserted.
    """
    return _parsed(path, _whole_lines(path))


def head_of(path: Path) -> str:
    """Return the hash of the last line; empty without one. The log itself is not verified."""
    return _head(_whole_lines(path))


def heads_of(path: Path) -> list[str]:
    """Return the hash of every line: the heads that the log had so far."""
    return [sha256(line).hexdigest() for line in _whole_lines(path)]


def _parsed(path: Path, lines: Sequence[bytes]) -> list[dict[str, Any]]:
    entries, before = [], ""
    for number, line in enumerate(lines, start=1):
        try:
            entry = dict(parse_json(line))
        except (ValueError, TypeError) as error:
            raise RunDirectoryError(f"{path}, line {number}: {error}; restore the file from a copy") from None
        if entry.pop(BEFORE, None) != before:
            raise RunDirectoryError(
                f"{path}: line {number} does not follow the line before it, so a line was changed, removed or "
                "inserted; restore the file from a copy"
            )
        entries.append(entry)
        before = sha256(line).hexdigest()
    return entries


def _head(lines: Sequence[bytes]) -> str:
    return sha256(lines[-1]).hexdigest() if lines else ""


def _whole_lines(path: Path) -> list[bytes]:
    """Return the lines up to the last line feed."""
    place = opened(path)
    if not place.exists():
        return []
    try:
        content = read_bytes(place, MAX_LIST_BYTES)
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"{path} cannot be read ({error}); restore it from a copy") from None
    return content[: content.rfind(b"\n") + 1].splitlines()


@contextmanager
def _locked(path: Path, mode: int) -> Iterator[BinaryIO]:
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, mode), "a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
