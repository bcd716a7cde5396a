"""Files for the server's per-client entries (caches, link states) instead of memory: one mapped file each.

A file is written once and never changed: a replaced entry gets a new file, and the old one is deleted when no
checkpoint names it any more. A crash at any moment therefore leaves every file that the last checkpoint names.
"""

from __future__ import annotations

from hashlib import file_digest, sha256
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import RunDirectoryError, RunError
from fedreuse.core.files import sync_folder, write_whole
from fedreuse.core.int_map import Deferred
from fedreuse.core.names import inside
from fedreuse.core.values import nbytes, value
from fedreuse.engine.state.state_file import map_state, state_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from fedreuse.core.schema import ModelSchema

__all__ = ["StoredEntry", "StoredFile", "TensorStore"]

MIN_BYTES = 16_384
"""Entries below four pages stay in memory: a mapping would cost more than it saves."""


@value
class StoredEntry:
    """Reference of a checkpoint to an entry in a file, with the size of its arrays and the SHA-256 of the file."""

    file: str
    nbytes: int
    digest: str = ""


class StoredFile(Deferred):
    """An entry in a file; each access maps it anew, so that nothing stays in memory between accesses."""

    def __init__(self, path: Path, size: int, schema: ModelSchema, digest: str = "", owner: str = "") -> None:
        """Refer to a file whose arrays have `size` bytes."""
        self._digest, self._owner = digest, owner
        self.path = path
        self.nbytes = size
        self._schema = schema

    @property
    def entry(self) -> StoredEntry:
        """The reference that a checkpoint stores."""
        return StoredEntry(self.path.name, self.nbytes, self._digest)

    def load(self) -> Any:
        """Return the entry; its arrays are views of the file."""
        try:
            return map_state(self.path, self._schema, self._owner)
        except OSError as error:
            raise RunDirectoryError(
                f"{self.path} cannot be read ({error}), but the checkpoint names it; restore the file, or delete the "
                "run directory and start the run again"
            ) from None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _noted(note: Callable[[Any], object], pieces: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    for piece in pieces:
        note(piece)
        yield piece


class TensorStore:
    """Files of entries in a folder; entries below `min_bytes` stay in memory."""

    def __init__(self, folder: Path, schema: ModelSchema, min_bytes: int = MIN_BYTES, run: str = "") -> None:
        """Create a store; the folder is created with the first file. `run` and name are part of a file's checksum."""
        self._run = run
        self._folder = folder
        self._schema = schema
        self._min_bytes = min_bytes

    def takes(self, entry: object) -> bool:
        """Return True if the entry is large enough for a file."""
        return nbytes(entry) >= self._min_bytes

    def put(self, name: str, entry: object) -> StoredFile:
        """Write an entry; the name must be new, or belong to an attempt that was never checkpointed."""
        path = self._folder / f"{name}.safetensors"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            digest = sha256()
            write_whole(path, _noted(digest.update, state_pieces(entry, self._schema, self._owner(path))))
        except OSError as error:
            raise RunError(
                f"{path} could not be written ({error}); free some disk space, then continue with resume=True"
            ) from None
        return StoredFile(path, nbytes(entry), self._schema, digest.hexdigest(), self._owner(path))

    def _owner(self, path: Path) -> str:
        return f"run {self._run}, {path.name}" if self._run else ""

    def open(self, entry: StoredEntry) -> StoredFile:
        """Return the file that a checkpoint names; paths outside of the folder are refused."""
        if "/" in entry.file or not entry.file.endswith(".safetensors"):
            raise RunDirectoryError(f"the checkpoint names {entry.file!r}, which is no file of {self._folder}")
        path = inside(self._folder, entry.file)
        if entry.digest and path.exists() and _digest(path) != entry.digest:
            raise RunDirectoryError(
                f"{path} is not the file that the checkpoint names: its digest differs; restore it from a copy, or "
                "delete the run directory and start the run again"
            )
        return StoredFile(path, entry.nbytes, self._schema, entry.digest, self._owner(path))

    def flush(self) -> None:
        """Sync the directory, so that the names of new files are as durable as their content."""
        sync_folder(self._folder)

    def remove(self, files: Iterable[StoredFile]) -> None:
        """Delete files that no checkpoint names any more; existing mappings of them stay valid."""
        for file in files:
            file.path.unlink(missing_ok=True)

    def keep_only(self, names: Collection[str], pattern: str = "*") -> None:
        """Delete all other files that match a pattern; a crash may have left them behind."""
        for path in self._folder.glob(pattern) if self._folder.exists() else ():
            if path.name not in names:
                path.unlink()
