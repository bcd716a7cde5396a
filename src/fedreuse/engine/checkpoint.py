"""A server record as named blobs: per-client entries stand alone, so that a checkpoint writes what changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fedreuse.engine.client_store import MemoryStore
from fedreuse.engine.records import ClientRecord, ServerRecord
from fedreuse.engine.state_file import read_state, write_state
from fedreuse.tensors import Tensors

if TYPE_CHECKING:
    from fedreuse.schema import ModelSchema

__all__ = ["Blobs", "Checkpointer", "restore_clients", "restore_server"]

Blobs = dict[tuple[str, int], bytes | None]
"""Bytes by place and key; None means that the entry is gone."""
_MAIN = "server"
_CLIENTS = "clients"


class Checkpointer:
    """Remembers what the last checkpoint held, by identity: a value that is the same object has not changed."""

    def __init__(self, schema: ModelSchema, record: ServerRecord | None = None) -> None:
        """`record` is what a resumed run starts from."""
        self._schema = schema
        self._held: dict[str, Mapping[int, Any]] = _split(record)[1] if record is not None else {}

    def changes(self, record: ServerRecord, store: object) -> Blobs:
        """What must be written so that the stored state becomes this one."""
        rest, mappings = _split(record)
        blobs: Blobs = {(_MAIN, 0): write_state(rest, self._schema)}
        for place in {**self._held, **mappings}:  # a mapping that became empty is no longer among the new ones
            held, entries = self._held.get(place, {}), mappings.get(place, {})
            for key, entry in entries.items():
                if held.get(key) is not entry:
                    blobs[place, key] = write_state(entry, self._schema)
            blobs.update({(place, key): None for key in held.keys() - entries.keys()})
        self._held = mappings
        if isinstance(store, MemoryStore):
            for client, kept in store.take_changed().items():
                blobs[_CLIENTS, client] = write_state(kept, self._schema)
        return blobs


def restore_server(blobs: Mapping[tuple[str, int], bytes], schema: ModelSchema, where: str) -> ServerRecord:
    """The record again, exactly."""
    record = read_state(blobs[_MAIN, 0], schema, where)
    mappings: dict[str, dict[int, Any]] = {}
    for (place, key), data in blobs.items():
        if place not in (_MAIN, _CLIENTS):
            mappings.setdefault(place, {})[key] = read_state(data, schema, where)
    joined: ServerRecord = _join(record, mappings)
    return dataclasses.replace(joined, durable_exchange=joined.exchange)


def restore_clients(blobs: Mapping[tuple[str, int], bytes], schema: ModelSchema, where: str) -> dict[int, ClientRecord]:
    """The clients' records that a memory store held."""
    return {key: read_state(data, schema, where) for (place, key), data in blobs.items() if place == _CLIENTS}


def _split(record: ServerRecord) -> tuple[Any, dict[str, Mapping[int, Any]]]:
    mappings: dict[str, Mapping[int, Any]] = {}

    def walk(node: Any, path: str) -> Any:
        if isinstance(node, Mapping) and all(isinstance(key, int) for key in node):
            if node:
                mappings[path] = node
            return {}
        if not dataclasses.is_dataclass(node) or isinstance(node, type | Tensors):
            return node
        parts = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
        walked = {name: walk(part, f"{path}.{name}") for name, part in parts.items()}
        changed = {name: part for name, part in walked.items() if part is not parts[name]}
        return dataclasses.replace(node, **changed) if changed else node

    return walk(record, _MAIN), mappings


def _join(record: Any, mappings: Mapping[str, Mapping[int, Any]]) -> Any:
    for path, entries in mappings.items():
        record = _put(record, path.split(".")[1:], dict(sorted(entries.items())))
    return record


def _put(node: Any, path: list[str], entries: Mapping[int, Any]) -> Any:
    if not path:
        return entries
    return dataclasses.replace(node, **{path[0]: _put(getattr(node, path[0]), path[1:], entries)})
