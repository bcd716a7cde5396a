"""Lock of a run directory: one writer at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

from fedreuse.core.errors import RunDirectoryError

__all__ = ["LOCK", "WriteLock"]

LOCK = "LOCK"
"""The locked file; it holds the id of the writing process, for messages."""


class WriteLock:
    """Exclusive lock of a folder. The operating system releases it when the process ends, in whatever way."""

    def __init__(self, folder: Path, way_out: str = "choose another `out`") -> None:
        self._folder, self._way_out = folder, way_out
        self._file: IO[str] | None = None

    def acquire(self) -> bool:
        """Create the folder if it is absent and lock it.

        Returns:
            True if the folder was created here.

        Raises:
            RunDirectoryError: Another process holds the lock, or the folder cannot be written.
        """
        try:
            is_new = not self._folder.exists()
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = (self._folder / LOCK).open("a+")
        except OSError as error:
            raise self._not_writable(error) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            owner = self._file.read().strip() or "unknown"
            self.release()
            raise RunDirectoryError(
                f"{self._folder} is in use by process {owner}; wait for it to end, or {self._way_out}"
            ) from None
        try:
            os.ftruncate(self._file.fileno(), 0)
            os.write(self._file.fileno(), str(os.getpid()).encode())
        except OSError as error:
            self.release()
            raise self._not_writable(error) from None
        # between the two steps above another process may have created the folder, and even run there
        return is_new and [path.name for path in self._folder.iterdir()] == [LOCK]

    def release(self) -> None:
        """Release the lock; without one, do nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _not_writable(self, error: OSError) -> RunDirectoryError:
        return RunDirectoryError(f"{self._folder} cannot be written ({error}); {self._way_out}")
