"""The client at its node: its memory is on its own disk, and a lost one is told, never invented."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Context, Message, RecordDict

from fedreuse.core.errors import ConfigError, WireError
from fedreuse.deploy.flower.client import answer, greet
from fedreuse.deploy.flower.client_disk import number_of
from fedreuse.deploy.flower.flat_config import to_flat
from fedreuse.deploy.flower.frame import ANY_CLIENT, Frame
from fedreuse.deploy.flower.message import content_of, frame_of
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.flower.server import serve
from fedreuse.robustness.privacy import SECRET_FILE
from fedreuse.runs.launch import run
from tests.deploy.fake_grid import FIRST_NODE, FakeGrid
from tests.tiny import results, tiny

CONFIG = tiny(method={"name": "dg_fedreuse"}, rounds={"count": 3, "cohort": 6})


def spoil_store(grid: FakeGrid, folder: Path, how: str) -> None:
    """After round 1, client 3's memory is gone, or no longer what it was."""

    def change(request: Message, reply: Message) -> Message:
        if request.metadata.group_id == "1" and request.metadata.dst_node_id == FIRST_NODE + 3:
            (path,) = (folder / "node-3").glob("*/client-*.safetensors")
            if how == "wiped":
                path.unlink()
            else:
                data = bytearray(path.read_bytes())
                data[len(data) // 2] ^= 1
                path.write_bytes(data)
        return reply

    grid.spoil = change


@pytest.mark.slow
@pytest.mark.parametrize("how", ["wiped", "corrupt"])
def test_a_lost_memory_costs_one_round_of_that_client_and_both_ends_start_over(tmp_path: Path, how: str) -> None:
    flat = to_flat(CONFIG, Deployment(out=str(tmp_path / "out")))
    grid = FakeGrid(tmp_path, flat, range(6))
    spoil_store(grid, tmp_path, how)
    directory = serve(grid, flat)
    told = [(event.round_number, event.outcome, event.reason) for event in directory.events() if event.client == 3]
    assert told[0][:2] == (1, "fresh")
    assert told[1][:2] == (2, "lost")
    assert told[2][1:] == ("fresh", "no cache")  # as at first contact
    assert [row.kind for row in directory.ledger() if row.client == 3 and row.round_number == 2][-1] == "forgot"


@pytest.mark.slow
def test_two_runs_of_one_configuration_do_not_share_memories(tmp_path: Path) -> None:
    for name in ("first", "second"):
        flat = to_flat(CONFIG, Deployment(out=str(tmp_path / name)))
        serve(FakeGrid(tmp_path, flat, range(6)), flat)
    assert len(list((tmp_path / "node-0").iterdir())) == 2
    assert results(tmp_path / "first") == results(tmp_path / "second")
    run(CONFIG, tmp_path / "simulated")
    assert results(tmp_path / "first") == results(tmp_path / "simulated")


ATTACKS: list[dict[str, Any]] = [
    {"name": "label_flip", "bad": 0.5}, {"name": "free_rider", "mode": "replay", "bad": 0.5},
    {"name": "alie", "z": 1.5, "bad": 0.3}, {"name": "false_counts", "bad": 0.3},
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack["name"])
def test_bad_nodes_tell_the_lies_of_the_simulation(tmp_path: Path, attack: dict[str, Any]) -> None:
    config = tiny(attack=attack, rounds={"count": 2, "cohort": 6})
    flat = to_flat(config, Deployment(out=str(tmp_path / "out")))
    directory = serve(FakeGrid(tmp_path, flat, range(6)), flat)
    assert results(directory) == results(run(config, tmp_path / "simulated"))


@pytest.mark.slow
def test_noise_over_real_nodes_comes_from_a_secret_of_the_server(tmp_path: Path) -> None:
    rule = {"name": "private_mean", "clip": 0.5, "noise": 2.0}
    config = tiny(method={"name": "averaging", "aggregate": rule}, rounds={"count": 2, "cohort": 6})
    flat = to_flat(config, Deployment(out=str(tmp_path / "out")))
    directory = serve(FakeGrid(tmp_path, flat, range(6)), flat)
    assert (directory.path / SECRET_FILE).stat().st_mode & 0o777 == 0o600
    assert not any("secret" in str(file) for node in range(6) for file in (tmp_path / f"node-{node}").rglob("*"))
    simulated = run(config, tmp_path / "simulated")
    assert directory.summary["privacy"] == simulated.summary["privacy"]
    assert directory.summary["model_digest"] != simulated.summary["model_digest"]


def context(folder: Path, **node_config: int | str) -> Context:
    flat = to_flat(CONFIG, Deployment())
    return Context(1, 1, {"store": str(folder), **node_config}, RecordDict(), flat)  # type: ignore[dict-item,arg-type]


def message(frame: Frame, kind: str) -> Message:
    made = Message(content_of(frame), dst_node_id=1, message_type=kind)
    made.metadata.__dict__["_message_id"] = "1"
    return made


@pytest.mark.parametrize("wrong", [{"partition-id": 6}, {"partition-id": "0"}])
def test_a_node_must_know_whom_it_plays(tmp_path: Path, wrong: dict[str, int | str]) -> None:
    told = frame_of(greet(message(Frame("run"), "query"), context(tmp_path, **wrong)))
    assert "partition-id" in told.facts["refused"]


def test_a_node_without_a_number_is_told_whom_it_plays_and_remembers(tmp_path: Path) -> None:
    nobody = frame_of(greet(message(Frame("run"), "query"), context(tmp_path)))
    assert (nobody.client, nobody.facts) == (ANY_CLIENT, {})
    with pytest.raises(ConfigError, match="partition-id"):
        answer(message(Frame("run", body=b"x"), "train"), context(tmp_path))
    assert frame_of(greet(message(Frame("run", 4), "query"), context(tmp_path))).client == 4
    assert number_of(context(tmp_path), Frame("run", body=b"x")) == 4
    other = frame_of(greet(message(Frame("run", 4), "query"), context(tmp_path, **{"partition-id": 2})))
    assert "the server says client 4, but this node was started as client 2" in other.facts["refused"]


@pytest.mark.parametrize("name", ["../../etc", "", "a/b", "x" * 65])
def test_the_name_of_a_run_cannot_lead_out_of_the_store(tmp_path: Path, name: str) -> None:
    body = b"FR" + bytes(40)
    with pytest.raises(WireError):
        answer(message(Frame(name, body=body), "train"), context(tmp_path, **{"partition-id": 0}))
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_client_app_imports_nothing_that_a_client_does_not_need() -> None:
    # every import is paid by every worker, and by every message where there is none
    script = """
import sys, fedreuse.deploy.flower.at_node
print([name for name in ("pyarrow", "matplotlib", "sklearn", "scipy", "pandas", "ray") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stdout + done.stderr
