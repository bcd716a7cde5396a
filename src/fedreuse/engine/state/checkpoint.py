"""Checkpoints: a server record as named blobs, with one blob per client entry, so that only changes are written.

A method's state may hold hundreds of per-client entries (caches, controls, link states), of which one round changes
only the cohort's. Entries are immutable, so "changed" is decided by identity, without comparing arrays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import RunError
from fedreuse.core.int_map import ABSENT, IntMap
from fedreuse.core.mapped import is_large
from fedreuse.core.tensors import Tensors
from fedreuse.core.values import nbytes
from fedreuse.engine.state.client_store import MemoryStore
from fedreuse.engine.state.records import ClientRecord, ServerRecord
from fedreuse.engine.state.state_file import read_state, write_state
from fedreuse.engine.state.tensor_store import StoredEntry, StoredFile, TensorStore

if TYPE_CHECKING:
    from fedreuse.core.schema import ModelSchema

__all__ = ["Blobs", "Checkpointer", "restore_clients", "restore_server"]

Blobs = dict[tuple[str, int], bytes | None]
"""Bytes by path of the mapping and client; None deletes the entry."""
_MAIN = "server"
_CLIENTS = "clients"
_MAIN_FILE = "main-"
_MAX_BLOB_BYTES = 900_000_000
"""SQLite accepts a billion bytes in one row."""
_Mappings = dict[str, Mapping[int, Any]]


class Checkpointer:
    """Difference between consecutive checkpoints, by identity: the same object has not changed.

    With a tensor store, large entries are written to files, and the blob names the file; `settled` then returns a
    record that reads those entries from the files.
    """

    def __init__(
        self, schema: ModelSchema, record: ServerRecord | None = None, tensors: TensorStore | None = None
    ) -> None:
        """Start from nothing, or from the `record` of a resumed run."""
        self._schema = schema
        self._tensors = tensors
        self._held: _Mappings = _split(record)[1] if record is not None else {}
        self._sizes = {path: sum(map(nbytes, _raw(entries))) for path, entries in self._held.items()}
        self._moved: dict[str, dict[int, StoredFile]] = {}
        self._main: StoredFile | None = None
        self._replaced: list[StoredFile] = []

    def changes(self, record: ServerRecord, store: object) -> Blobs:
        """Return the blobs to write so that the stored state becomes this one."""
        rest, mappings = _split(record)
        blobs: Blobs = {(_MAIN, 0): self._written_main(rest, record.exchange)}
        for path in {**self._held, **mappings}:  # both, because a mapping that became empty is not in the new ones
            for key, old, new in _differences(self._held.get(path, {}), mappings.get(path, {})):
                grown = (0 if new is ABSENT else nbytes(new)) - (0 if old is ABSENT else nbytes(old))
                self._sizes[path] = self._sizes.get(path, 0) + grown
                if isinstance(old, StoredFile):
                    self._replaced.append(old)  # deleted in `settled`: until then the last checkpoint still names it
                blobs[path, key] = None if new is ABSENT else self._written(path, key, new, record.exchange)
        if (self._moved or self._main is not None) and self._tensors is not None:
            self._tensors.flush()
        self._held = mappings
        self._sizes[_MAIN] = nbytes(rest)
        if isinstance(store, MemoryStore):
            for client, kept in store.take_changed().items():
                blobs[_CLIENTS, client] = _checked(write_state(kept, self._schema), "client_store")
        return blobs

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of the arrays in the last record, by path of the client mappings; the rest as `server`."""
        return {path.replace(".state.", "."): size for path, size in self._sizes.items() if size}

    def settled(self, record: ServerRecord) -> ServerRecord:
        """Return the record once its checkpoint is durable: moved entries are read from files; delete old files."""
        for path, files in self._moved.items():
            held = self._held[path]
            assert isinstance(held, IntMap)
            self._held[path] = held.with_(files)
            record = _put(record, path.split(".")[1:], self._held[path])
        if self._main is not None:
            record = _join(self._main.load(), self._held)
        if self._tensors is not None:
            self._tensors.remove(self._replaced)
            self._tensors.keep_only({self._main.path.name} if self._main is not None else (), f"{_MAIN_FILE}*")
        self._moved, self._replaced = {}, []
        return record

    def _written_main(self, rest: Any, exchange: int) -> bytes:
        """Write the record without its mappings; a large one to a file, from which it is then read."""
        self._main = None
        if self._tensors is None or not is_large(nbytes(rest)):
            return _checked(write_state(rest, self._schema), "server_store")
        self._main = self._tensors.put(f"{_MAIN_FILE}{exchange}", rest)
        return write_state(self._main.entry, self._schema)

    def _written(self, path: str, key: int, entry: Any, exchange: int) -> bytes:
        is_stored = isinstance(entry, StoredFile)
        if self._tensors is None or not (is_stored or self._tensors.takes(entry)):
            return write_state(entry.load() if is_stored else entry, self._schema)
        if is_stored:
            return write_state(entry.entry, self._schema)
        # The exchange number makes the name new, so the file of the last checkpoint is never overwritten.
        name = f"{path.removeprefix('server.')}-{key:07d}-{exchange}"
        file = self._moved.setdefault(path, {})[key] = self._tensors.put(name, entry)
        return write_state(file.entry, self._schema)


def restore_server(
    blobs: Mapping[tuple[str, int], bytes], schema: ModelSchema, where: str, tensors: TensorStore | None = None
) -> ServerRecord:
    """Return the stored record, bit-identical; entries in files stay there."""
    record = read_state(blobs[_MAIN, 0], schema, where)
    mappings: dict[str, dict[int, Any]] = {}
    named = set()
    if isinstance(record, StoredEntry) and tensors is not None:
        named.add(record.file)
        record = tensors.open(record).load()
    for (path, key), data in blobs.items():
        if path in (_MAIN, _CLIENTS):
            continue
        entry = read_state(data, schema, where)
        if isinstance(entry, StoredEntry) and tensors is not None:
            named.add(entry.file)
            entry = tensors.open(entry)
        mappings.setdefault(path, {})[key] = entry
    if tensors is not None:
        tensors.keep_only(named)
    joined: ServerRecord = _join(record, mappings)
    return dataclasses.replace(joined, durable_exchange=joined.exchange)


def restore_clients(blobs: Mapping[tuple[str, int], bytes], schema: ModelSchema, where: str) -> dict[int, ClientRecord]:
    """Return the clients' records of a memory store."""
    return {key: read_state(data, schema, where) for (path, key), data in blobs.items() if path == _CLIENTS}


def _checked(blob: bytes, setting: str) -> bytes:
    """Refuse a blob that is too long for the journal, before it is written."""
    if len(blob) > _MAX_BLOB_BYTES:
        raise RunError(
            f"a state of {len(blob):,} bytes is too large for the journal, which takes {_MAX_BLOB_BYTES:,}; set "
            f"{setting}: disk, then start the run again"
        )
    return blob


def _differences(held: Mapping[int, Any], entries: Mapping[int, Any]) -> Iterator[tuple[int, Any, Any]]:
    """Yield key, old entry and new entry where they are not the same object."""
    # Two IntMaps share the branches that did not change, so their difference costs as much as the changes, not the
    # population. An empty mapping may be a plain dict on one side only.
    if isinstance(held or IntMap(), IntMap) and isinstance(entries or IntMap(), IntMap):
        before, now = (side if isinstance(side, IntMap) else IntMap() for side in (held, entries))
        yield from now.changes_since(before)
        return
    for key in {**held, **entries}:
        old, new = held.get(key, ABSENT), entries.get(key, ABSENT)
        if old is not new:
            yield key, old, new


def _raw(entries: Mapping[int, Any]) -> Iterator[Any]:
    """Iterate over the entries without loading those in files."""
    return (entry for _, entry in entries.raw_items()) if isinstance(entries, IntMap) else iter(entries.values())


def _split(record: ServerRecord) -> tuple[Any, _Mappings]:
    """Return the record without its mappings by client, and these mappings by their path."""
    mappings: _Mappings = {}

    def walk(node: Any, path: str) -> Any:
        if isinstance(node, IntMap) or (isinstance(node, Mapping) and all(isinstance(key, int) for key in node)):
            if node:
                mappings[path] = node
            return IntMap() if isinstance(node, IntMap) else {}
        if not dataclasses.is_dataclass(node) or isinstance(node, type | Tensors):
            return node
        parts = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
        walked = {name: walk(part, f"{path}.{name}") for name, part in parts.items()}
        changed = {name: part for name, part in walked.items() if part is not parts[name]}
        return dataclasses.replace(node, **changed) if changed else node

    return walk(record, _MAIN), mappings


def _join(record: Any, mappings: Mapping[str, Mapping[int, Any]]) -> Any:
    for path, entries in mappings.items():
        whole = entries if isinstance(entries, IntMap) else dict(sorted(entries.items()))
        record = _put(record, path.split(".")[1:], whole)
    return record


def _put(node: Any, path: list[str], entries: Mapping[int, Any]) -> Any:
    """Return the value with a mapping put at a path, of the same type as the mapping it replaces."""
    if not path:
        return IntMap(entries) if isinstance(node, IntMap) and not isinstance(entries, IntMap) else entries
    return dataclasses.replace(node, **{path[0]: _put(getattr(node, path[0]), path[1:], entries)})
