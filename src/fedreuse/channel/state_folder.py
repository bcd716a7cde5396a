"""State of one end of a channel: in memory, or in a folder that survives the process."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any
from weakref import finalize

from fedreuse.core.bounded import read_json
from fedreuse.core.errors import ConfigError, RunDirectoryError
from fedreuse.core.files import clear_leftovers, write_whole
from fedreuse.core.formats import CHANNEL
from fedreuse.core.schema import ModelSchema
from fedreuse.engine.state.state_file import map_state, write_state
from fedreuse.store.lock import WriteLock

__all__ = ["StateFolder", "check_name"]

_log = logging.getLogger("fedreuse")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_FILE = "channel.json"


def check_name(name: str) -> str:
    """Return a client's name, which becomes the name of a file.

    Raises:
        ConfigError: If it is no such name.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(f"a client's name has 1 to 64 letters, digits, dots, dashes and underscores, got {name!r}")
    return name


class StateFolder:
    """Facts, states by name and counters of one end; without a folder they live as long as the object.

    Files are written atomically. A lock keeps other processes out until `close`.

    Args:
        folder: The folder, created if absent; None: memory.
        owner: The end that the folder belongs to, such as `server` or `client site-1`.

    Raises:
        RunDirectoryError: The folder belongs to another end or is in use or damaged.
    """

    def __init__(self, folder: Path | str | None, owner: str) -> None:
        """Open or create the folder."""
        self._folder = None if folder is None else Path(folder)
        self._states: dict[str, Any] = {}
        self._counts: dict[str, int] = {}
        self._facts: dict[str, Any] = {"format": CHANNEL.version, "owner": owner}
        if self._folder is None:
            return
        lock = WriteLock(self._folder, "choose another folder")
        lock.acquire()
        self._release = finalize(self, lock.release)  # if `close` is not called
        try:
            self._folder.chmod(0o700)  # what was sent may reveal the client's data
            clear_leftovers(self._folder)
            self._open(self._folder / _FILE, owner)
        except BaseException:
            self.close()
            raise

    def _open(self, path: Path, owner: str) -> None:
        if not path.exists():
            return
        try:
            facts = read_json(path)
            found = facts["owner"]
        except (ValueError, LookupError, TypeError) as error:
            raise RunDirectoryError(
                f"{path} is damaged ({error}); delete the folder, and both ends start over"
            ) from None
        CHANNEL.check(facts.get("format"), str(path))
        if found != owner:
            raise RunDirectoryError(
                f"{path.parent} holds the state of {found}, but was opened as {owner}; every end needs a folder of its "
                "own: choose another, or delete this one if it was copied by mistake"
            )
        self._facts = facts

    def __str__(self) -> str:
        """Return the path, or `memory`."""
        return "memory" if self._folder is None else str(self._folder)

    def fact(self, name: str) -> Any:
        """Return a stored fact, or None."""
        return self._facts.get(name)

    def set_facts(self, **facts: Any) -> None:
        """Store facts, which are plain data."""
        self._facts = {**self._facts, **facts}
        self._write(_FILE, json.dumps(self._facts).encode())

    def load(self, name: str, schema: ModelSchema, kind: type[Any]) -> Any:
        """Return a state, or None if there is none; a damaged one counts as lost."""
        if self._folder is None:
            return self._states.get(name)
        path = self._folder / f"{name}.safetensors"
        if not path.exists():
            return None
        try:
            state = map_state(path, schema)
        except RunDirectoryError as error:
            _log.warning("%s counts as lost: %s", path, error)
            return None
        return state if isinstance(state, kind) else None

    def save(self, name: str, state: Any, schema: ModelSchema) -> None:
        """Store a state."""
        if self._folder is None:
            self._states[name] = state
        else:
            self._write(f"{name}.safetensors", write_state(state, schema))

    def count(self, name: str) -> int:
        """Return a counter; 0 if it was never stored."""
        if self._folder is None:
            return self._counts.get(name, 0)
        path = self._folder / f"{name}.count"
        try:
            return int(path.read_text()) if path.exists() else 0
        except ValueError:
            raise RunDirectoryError(f"{path} is damaged; delete the folder, and both ends start over") from None

    def set_count(self, name: str, count: int) -> None:
        """Store a counter."""
        if self._folder is None:
            self._counts[name] = count
        else:
            self._write(f"{name}.count", str(count).encode())

    def close(self) -> None:
        """Release the folder."""
        if self._folder is not None:
            self._release()

    def _write(self, name: str, data: bytes) -> None:
        if self._folder is None:
            return
        path = self._folder / name
        try:
            write_whole(path, data, is_private=True)
        except OSError as error:
            raise RunDirectoryError(f"{path} could not be written ({error}); free some disk space") from None
