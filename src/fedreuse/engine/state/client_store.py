"""Stores of client records between exchanges: in memory, or one file per client."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fedreuse.core.errors import RunError
from fedreuse.core.files import clear_leftovers, write_whole
from fedreuse.engine.state.records import ClientRecord
from fedreuse.engine.state.state_file import map_state, state_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fedreuse.core.schema import ModelSchema

__all__ = ["ClientStore", "DiskStore", "MemoryStore"]


class ClientStore(Protocol):
    """Records by client id; a client without a record has an empty one."""

    def load(self, client: int) -> ClientRecord:
        """Return the client's record."""
        ...

    def save(self, client: int, record: ClientRecord) -> None:
        """Store the record; called before the server absorbs the reply."""
        ...

    def commit(self, acks: Mapping[int, int]) -> None:
        """End the round: keep the acknowledged memories only, without the groups kept for the round."""
        ...

    def items(self) -> Iterator[tuple[int, ClientRecord]]:
        """Iterate over all records."""
        ...


class MemoryStore:
    """Records in this process; a run's checkpoint stores those that `take_changed` returns."""

    def __init__(self, records: Mapping[int, ClientRecord] | None = None) -> None:
        """Start empty, or from a checkpoint."""
        self._records = dict(records or {})
        self._changed: set[int] = set()

    def load(self, client: int) -> ClientRecord:
        """Return the client's record."""
        return self._records.get(client, ClientRecord())

    def save(self, client: int, record: ClientRecord) -> None:
        """Store the record."""
        self._records[client] = record
        self._changed.add(client)

    def commit(self, acks: Mapping[int, int]) -> None:
        """Keep the acknowledged memories of these clients only."""
        for client, ack in acks.items():
            if client in self._records:
                self.save(client, self._records[client].committed(ack))

    def items(self) -> Iterator[tuple[int, ClientRecord]]:
        """Iterate over all records."""
        return iter(self._records.items())

    def take_changed(self) -> dict[int, ClientRecord]:
        """Return the records that changed since the last call."""
        changed = {client: self._records[client] for client in sorted(self._changed)}
        self._changed = set()
        return changed


class DiskStore:
    """One file per client, written atomically, which survives the process.

    Nothing is dropped at the end of a round: if the server crashed now, it would resume from an older checkpoint and
    ask for an older memory. The `durable` field of the next request says which memories can be dropped.
    """

    def __init__(self, folder: Path, schema: ModelSchema, run: str = "") -> None:
        """Create `folder` if needed, readable by its owner only; `run` and client are part of each file's checksum."""
        self._run = run
        self._folder = folder
        self._schema = schema
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        clear_leftovers(folder)

    def load(self, client: int) -> ClientRecord:
        """Return the client's record; a missing file is an empty record."""
        path = self._path(client)
        if not path.exists():
            return ClientRecord()
        record = map_state(path, self._schema, self._owner(client))
        return record if isinstance(record, ClientRecord) else ClientRecord()

    def save(self, client: int, record: ClientRecord) -> None:
        """Write the record atomically."""
        path = self._path(client)
        try:
            write_whole(path, state_pieces(record, self._schema, self._owner(client)), is_private=True)
        except OSError as error:
            raise RunError(
                f"{path} could not be written ({error}); free some disk space, then continue with resume=True"
            ) from None

    def commit(self, acks: Mapping[int, int]) -> None:
        """Do nothing; see the class."""

    def items(self) -> Iterator[tuple[int, ClientRecord]]:
        """Iterate over all records."""
        for path in sorted(self._folder.glob("client-*.safetensors")):
            client = int(path.stem.removeprefix("client-"))
            yield client, self.load(client)

    def _owner(self, client: int) -> str:
        return f"run {self._run}, client {client}" if self._run else ""

    def _path(self, client: int) -> Path:
        return self._folder / f"client-{client:07d}.safetensors"
