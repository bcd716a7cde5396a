"""Where the server's per-client entries (caches, ends of links) may lie instead of in memory: one mapped file each.

A file is written once and never changed: an entry that is replaced gets a file of its own, and the old one goes when no
checkpoint names it any more. So a crash at any moment leaves every file that the last checkpoint names.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import RunDirectoryError, RunError
from fedreuse.core.files import write_whole
from fedreuse.core.int_map import Deferred
from fedreuse.core.values import nbytes, value
from fedreuse.engine.state.state_file import map_state, write_state

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from fedreuse.core.schema import ModelSchema

__all__ = ["StoredEntry", "StoredFile", "TensorStore"]

MIN_BYTES = 16_384
"""Entries below four pages stay in memory: mapping them would not pay."""


@value
class StoredEntry:
    """What a checkpoint says of an entry that lies in a file: which one, and how large its arrays are."""

    file: str
    nbytes: int


class StoredFile(Deferred):
    """An entry in a file; each look maps it afresh, so that nothing stays in memory between looks."""

    def __init__(self, path: Path, size: int, schema: ModelSchema) -> None:
        """`size` counts the bytes of its arrays."""
        self.path = path
        self.nbytes = size
        self._schema = schema

    @property
    def entry(self) -> StoredEntry:
        """What a checkpoint says of it."""
        return StoredEntry(self.path.name, self.nbytes)

    def load(self) -> Any:
        """The entry, its arrays views of the file."""
        try:
            return map_state(self.path, self._schema)
        except OSError as error:
            raise RunDirectoryError(
                f"{self.path} cannot be read ({error}), but the checkpoint names it; restore the file, or delete the "
                "run directory and start the run again"
            ) from None


class TensorStore:
    """Files of entries in a folder; `min_bytes` is the size from which an entry is worth one."""

    def __init__(self, folder: Path, schema: ModelSchema, min_bytes: int = MIN_BYTES) -> None:
        """The folder is made with the first file."""
        self._folder = folder
        self._schema = schema
        self._min_bytes = min_bytes

    def takes(self, entry: object) -> bool:
        """Whether the entry is large enough to lie in a file."""
        return nbytes(entry) >= self._min_bytes

    def put(self, name: str, entry: object) -> StoredFile:
        """Write an entry; the name must be new, or that of a try that was never checkpointed."""
        path = self._folder / f"{name}.safetensors"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, write_state(entry, self._schema))
        except OSError as error:
            raise RunError(
                f"{path} could not be written ({error}); free some disk space, then go on with resume=True"
            ) from None
        return StoredFile(path, nbytes(entry), self._schema)

    def open(self, entry: StoredEntry) -> StoredFile:
        """The file that a checkpoint names; only names of this folder are followed."""
        if os.sep in entry.file or not entry.file.endswith(".safetensors"):
            raise RunDirectoryError(f"the checkpoint names {entry.file!r}, which is no file of {self._folder}")
        return StoredFile(self._folder / entry.file, entry.nbytes, self._schema)

    def flush(self) -> None:
        """Make the names of new files as durable as their content."""
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, files: Iterable[StoredFile]) -> None:
        """No checkpoint names these any more; who still looks at one keeps it until then."""
        for file in files:
            file.path.unlink(missing_ok=True)

    def keep_only(self, names: Collection[str]) -> None:
        """Remove what a crash left behind."""
        for path in self._folder.glob("*") if self._folder.exists() else ():
            if path.name not in names:
                path.unlink()
