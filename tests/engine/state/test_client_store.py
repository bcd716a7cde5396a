"""Client stores: records by client, in memory or one file each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import RunDirectoryError, RunError
from fedreuse.core.files import beside
from fedreuse.core.tensors import Tensors
from fedreuse.engine.state.client_store import DiskStore, MemoryStore
from fedreuse.engine.state.records import ClientMemory, ClientRecord, Kept
from fedreuse.testing.quadratic import quadratic_schema

SCHEMA = quadratic_schema()
TENSORS = Tensors(SCHEMA.weights, np.arange(12.0))
RECORD = ClientRecord(
    {2: ClientMemory("a", {"update": TENSORS}, {}, Kept(1, {"model": TENSORS})), 3: ClientMemory("b")}
)


def test_memory_hands_out_what_changed_once() -> None:
    store = MemoryStore({7: RECORD})
    assert store.take_changed() == {}
    store.save(1, RECORD)
    store.commit({7: 2})
    assert list(store.take_changed()) == [1, 7]
    assert store.take_changed() == {}


def test_memory_keeps_what_counts() -> None:
    store = MemoryStore({7: RECORD})
    store.commit({7: 2, 8: 5})
    assert list(store.load(7).memories) == [2]
    assert store.load(7).memories[2].kept is None
    assert [client for client, _ in store.items()] == [7]


def test_disk_survives_the_object_that_wrote_it(tmp_path: Path) -> None:
    DiskStore(tmp_path / "clients", SCHEMA).save(12, RECORD)
    again = DiskStore(tmp_path / "clients", SCHEMA)
    assert {client: sorted(record.memories) for client, record in again.items()} == {12: [2, 3]}
    assert [path.name for path in (tmp_path / "clients").iterdir()] == ["client-0000012.safetensors"]


def test_disk_makes_the_folders_above_its_own(tmp_path: Path) -> None:
    DiskStore(tmp_path / "run" / "clients", SCHEMA).save(1, RECORD)
    assert (tmp_path / "run" / "clients" / "client-0000001.safetensors").exists()


def test_disk_forgets_nothing_at_the_end_of_a_round(tmp_path: Path) -> None:
    # the server's checkpoint may be older: the next request's durable decides
    store = DiskStore(tmp_path, SCHEMA)
    store.save(1, RECORD)
    store.commit({1: 3})
    assert sorted(store.load(1).memories) == [2, 3]


def test_an_interrupted_write_leaves_the_old_record(tmp_path: Path) -> None:
    store = DiskStore(tmp_path, SCHEMA)
    store.save(1, RECORD)
    beside(tmp_path / "client-0000001.safetensors").write_bytes(b"half a rec")
    assert sorted(DiskStore(tmp_path, SCHEMA).load(1).memories) == [2, 3]
    assert [client for client, _ in store.items()] == [1]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "client-0000004.safetensors").write_bytes(b"garbage")
    with pytest.raises(RunDirectoryError, match=r"client-0000004\.safetensors is not a readable checkpoint"):
        DiskStore(tmp_path, SCHEMA).load(4)


@pytest.mark.slow
def test_a_full_disk_is_a_clear_error_and_keeps_the_old_record(tmp_path: Path) -> None:
    script = f"""
import resource, signal, sys
sys.path.insert(0, {str(Path.cwd())!r})
from pathlib import Path
from tests.engine.state.test_client_store import DiskStore, RECORD, SCHEMA, RunError
store = DiskStore(Path({str(tmp_path)!r}), SCHEMA)
store.save(1, RECORD)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    store.save(1, RECORD)
except RunError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "client-0000001.safetensors could not be written" in done.stdout
    assert "free some disk space" in done.stdout
    assert sorted(DiskStore(tmp_path, SCHEMA).load(1).memories) == [2, 3]
    assert issubclass(RunError, Exception)
