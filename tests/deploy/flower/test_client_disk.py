"""The client's own disk: by run, atomically, one process at a time."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest
from flwr.app import Context, RecordDict

from fedreuse.core.errors import WireError
from fedreuse.deploy.flower.client_disk import alone, load, run_folder
from fedreuse.engine.state.client_store import DiskStore
from fedreuse.engine.state.records import ClientMemory, ClientRecord
from fedreuse.testing.quadratic import quadratic_schema


def context(**node_config: str) -> Context:
    return Context(run_id=1, node_id=2, node_config=node_config, state=RecordDict(), run_config={})


def test_the_nodes_store_comes_before_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDREUSE_HOME", str(tmp_path / "home"))
    assert run_folder(context(store=str(tmp_path / "disk")), "ab12") == tmp_path / "disk" / "ab12"
    assert run_folder(context(), "ab12") == tmp_path / "home" / "clients" / "ab12"
    assert (tmp_path / "home" / "clients" / "ab12").is_dir()


@pytest.mark.parametrize("run", ["", "../x", "a/b", "a" * 65])
def test_a_name_from_outside_never_leaves_the_folder(tmp_path: Path, run: str) -> None:
    with pytest.raises(WireError, match="is not the name of a run"):
        run_folder(context(store=str(tmp_path)), run)


def test_a_damaged_memory_is_a_lost_one(tmp_path: Path) -> None:
    store = DiskStore(tmp_path, quadratic_schema())
    store.save(3, ClientRecord({1: ClientMemory(None)}))
    assert load(store, 3).memories.keys() == {1}
    (path,) = tmp_path.glob("client-*.safetensors")
    path.write_bytes(path.read_bytes()[:-3] + b"???")
    assert load(store, 3).memories == {}
    assert load(store, 4).memories == {}


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with alone(tmp_path / "lock"), (tmp_path / "lock").open("w") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (tmp_path / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
