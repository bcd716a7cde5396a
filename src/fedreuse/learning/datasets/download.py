"""One file over HTTP with retry, resume and checksum, by the standard library alone."""

from __future__ import annotations

import hashlib
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO

from fedreuse.core.errors import DataError

__all__ = ["Progress", "Remote", "RetryPolicy", "download"]

Progress = Callable[[str, int, int | None], None]
"""Called with what is being fetched, the bytes that are there, and the bytes in all (None: unknown)."""

_CHUNK_BYTES = 1 << 18
_RETRIED_STATUS = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True)
class Remote:
    """A file elsewhere, with its published checksum as algorithm:hex."""

    url: str
    checksum: str

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.url.partition("?")[0].rsplit("/", 1)[-1]


@dataclass(frozen=True)
class RetryPolicy:
    """How long to wait for an answer, and how often to ask again while no new byte comes."""

    timeout_seconds: float = 10.0
    tries: int = 3
    pause_seconds: float = 0.5


class _InterruptedError(Exception):
    """The transfer stopped for a reason that may pass."""


def download(remote: Remote, folder: Path, progress: Progress, retries: RetryPolicy | None = None) -> Path:
    """Get the file into the folder; what an interrupted attempt left in NAME.part is continued."""
    retries = retries or RetryPolicy()
    target, part = folder / remote.name, folder / f"{remote.name}.part"
    if target.exists() and _checksum(target, remote) == remote.checksum:
        return target
    was_resumed = part.exists()
    _transfer(remote, part, progress, retries)
    if _checksum(part, remote) != remote.checksum and was_resumed:
        part.unlink()  # the beginning may have been of an older file: once more from the start
        _transfer(remote, part, progress, retries)
    if (found := _checksum(part, remote)) != remote.checksum:
        part.unlink()
        raise DataError(f"{remote.url}: checksum {found}, expected {remote.checksum}")
    return part.replace(target)


def _transfer(remote: Remote, part: Path, progress: Progress, retries: RetryPolicy) -> None:
    failures = 0
    while True:
        before = _size(part)
        try:
            return _attempt(remote, part, progress, retries.timeout_seconds)
        except _InterruptedError as error:
            failures = 1 if _size(part) > before else failures + 1
            if failures >= retries.tries:
                raise DataError(
                    f"{remote.url}: {error} ({failures} tries without a new byte); the same command goes on later"
                ) from None
            time.sleep(retries.pause_seconds * 2 ** (failures - 1))


def _attempt(remote: Remote, part: Path, progress: Progress, timeout_seconds: float) -> None:
    start = _size(part)
    headers = {"User-Agent": "fedreuse", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        with urllib.request.urlopen(
            urllib.request.Request(remote.url, headers=headers), timeout=timeout_seconds
        ) as answer:
            is_continued = start > 0 and answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
            start = start if is_continued else 0
            length = answer.headers.get("Content-Length")
            total = None if length is None else start + int(length)
            with part.open("ab" if is_continued else "wb") as file:
                _copy(answer, file, lambda done: progress(remote.name, start + done, total))
    except urllib.error.HTTPError as error:
        if error.code == 416:  # the part is as long as the file, or longer: the checksum decides
            return
        if error.code not in _RETRIED_STATUS:
            raise DataError(f"{remote.url}: the server answers {error.code} {error.reason}") from None
        raise _InterruptedError(f"the server answers {error.code} {error.reason}") from None
    except (OSError, HTTPException) as error:  # URLError and timeouts are among the OSErrors
        raise _InterruptedError(str(getattr(error, "reason", error)) or type(error).__name__) from None
    if total is not None and _size(part) < total:
        raise _InterruptedError(f"the connection ended after {_size(part)} of {total} bytes")


def _copy(source: BinaryIO, target: BinaryIO, report: Callable[[int], None]) -> None:
    done = 0
    while chunk := source.read(_CHUNK_BYTES):
        target.write(chunk)
        done += len(chunk)
        report(done)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _checksum(path: Path, remote: Remote) -> str:
    algorithm = remote.checksum.partition(":")[0]
    with path.open("rb") as file:
        return f"{algorithm}:{hashlib.file_digest(file, algorithm).hexdigest()}"
