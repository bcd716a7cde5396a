"""The server's entries in files: the same entries, named by checkpoints, gone when no checkpoint names them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import RunDirectoryError, RunError
from fedreuse.core.int_map import IntMap
from fedreuse.core.tensors import Tensors, is_equal
from fedreuse.core.values import nbytes
from fedreuse.engine.state.checkpoint import Checkpointer, restore_server
from fedreuse.engine.state.client_store import MemoryStore
from fedreuse.engine.state.records import Contact, ServerRecord
from fedreuse.engine.state.tensor_store import StoredEntry, StoredFile, TensorStore
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting, quadratic_schema
from tests.federation import NOISY, build, is_same, top_k

SCHEMA = quadratic_schema()


def tensors(number: float) -> Tensors:
    return Tensors(SCHEMA.weights, np.full(12, float(number)))


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_an_entry_is_written_once_and_looked_at_often(tmp_path: Path) -> None:
    store = TensorStore(tmp_path / "server", SCHEMA)
    file = store.put("cache-0000001-3", tensors(2.5))
    assert (file.nbytes, file.entry.file) == (96, "cache-0000001-3.safetensors")
    assert is_equal(file.load(), tensors(2.5))
    assert not file.load().values.flags.owndata
    assert is_equal(store.open(StoredEntry(file.entry.file, 96)).load(), tensors(2.5))


def test_small_entries_stay_in_memory(tmp_path: Path) -> None:
    store = TensorStore(tmp_path, SCHEMA, min_bytes=96)
    assert store.takes(tensors(1))
    assert not store.takes(Contact(3))
    assert not TensorStore(tmp_path, SCHEMA, min_bytes=97).takes(tensors(1))


def test_checkpoints_move_entries_to_files_and_drop_old_ones(tmp_path: Path) -> None:
    store = TensorStore(tmp_path, SCHEMA, min_bytes=1)
    keeper = Checkpointer(SCHEMA, None, store)
    first = ServerRecord(IntMap({1: tensors(1), 2: tensors(2)}), IntMap({1: Contact(1)}), 1)
    blobs = keeper.changes(first, MemoryStore())
    assert files(tmp_path) == ["state-0000001-1.safetensors", "state-0000002-1.safetensors"]
    settled = keeper.settled(first)
    held = dict(settled.state.raw_items())
    assert all(isinstance(entry, StoredFile) for entry in held.values())
    assert is_equal(settled.state[2], tensors(2))
    assert settled.contacts[1].ack == 1
    assert nbytes(settled.state) == 192  # told without a look

    second = replace(settled, state=settled.state.with_({2: tensors(3)}).without([1]), exchange=2)
    blobs |= keeper.changes(second, MemoryStore())
    # until the checkpoint is safe, the files of the last one stay
    assert files(tmp_path) == [f"state-{name}.safetensors" for name in ("0000001-1", "0000002-1", "0000002-2")]
    keeper.settled(second)
    assert files(tmp_path) == ["state-0000002-2.safetensors"]

    (tmp_path / "state-0000009-3.safetensors").write_bytes(b"left by a crash")
    again = restore_server({place: data for place, data in blobs.items() if data is not None}, SCHEMA, "here", store)
    assert files(tmp_path) == ["state-0000002-2.safetensors"]
    assert list(again.state) == [2]
    assert is_equal(again.state[2], tensors(3))


def test_what_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    store = TensorStore(tmp_path, SCHEMA, min_bytes=1)
    keeper = Checkpointer(SCHEMA, None, store)
    record = ServerRecord(IntMap({1: tensors(1)}), IntMap(), 1)
    keeper.changes(record, MemoryStore())
    settled = keeper.settled(record)
    assert set(keeper.changes(replace(settled, exchange=2), MemoryStore())) == {("server", 0)}
    assert files(tmp_path) == ["state-0000001-1.safetensors"]


def test_a_session_on_disk_equals_one_in_memory_and_holds_nothing(tmp_path: Path) -> None:
    federation, method = QuadraticFederation.draw(8, NOISY), build("dg_fedreuse", top_k(0.5))
    plain = federation.play(method, 9)
    stored = Session(federation, method, Setting(tensors=TensorStore(tmp_path, SCHEMA, min_bytes=1))).advance(9)
    assert all(is_same(one, other) for one, other in zip(plain.models, stored.models, strict=True))
    cache = stored.record.state.cache
    assert len(cache) == len(plain.record.state.cache) > 0
    assert all(isinstance(entry, StoredFile) for _, entry in cache.raw_items())
    assert len(files(tmp_path)) == len(cache)
    assert nbytes(cache) == nbytes(plain.record.state.cache)


def test_a_missing_or_foreign_file_is_named(tmp_path: Path) -> None:
    store = TensorStore(tmp_path, SCHEMA)
    with pytest.raises(RunDirectoryError, match=r"gone\.safetensors cannot be read .*but the checkpoint names it"):
        store.open(StoredEntry("gone.safetensors", 1)).load()
    for name in ("../outside.safetensors", "config.yaml"):
        with pytest.raises(RunDirectoryError, match="which is no file of"):
            store.open(StoredEntry(name, 1))
    (tmp_path / "bad.safetensors").write_bytes(b"garbage")
    with pytest.raises(RunDirectoryError, match=r"bad\.safetensors is not a readable checkpoint"):
        store.open(StoredEntry("bad.safetensors", 1)).load()


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "server").write_bytes(b"a file, not a folder")
    with pytest.raises(RunError, match=r"could not be written .*resume=True"):
        TensorStore(tmp_path / "server", SCHEMA).put("a", tensors(1))


def test_four_pages_are_worth_a_file(tmp_path: Path) -> None:
    store = TensorStore(tmp_path, SCHEMA)
    assert [store.takes(np.zeros(size, np.uint8)) for size in (16_383, 16_384)] == [False, True]
