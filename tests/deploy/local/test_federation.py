"""A real SuperLink and real SuperNodes on loopback: they run a whole federation, and leave nothing behind."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fedreuse.deploy.flower.app_folder import write_app
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.flower.server import STATE_FILE
from fedreuse.deploy.local.federation import LocalFederation
from fedreuse.runs.launch import run
from tests.tiny import results, tiny


def test_a_node_that_is_started_again_replaces_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    federation = LocalFederation(tmp_path, 1)
    monkeypatch.setattr(federation, "_start", lambda *_: subprocess.Popen(["sleep", "600"]))
    federation.start_node(0)
    first = federation.nodes[0]
    federation.start_node(0)
    assert first.returncode == -signal.SIGKILL  # reaped, too: a Popen that is dropped alive warns
    federation.stop()


@pytest.mark.deploy
def test_a_local_federation_gives_the_bits_of_a_simulation_and_stops(tmp_path: Path) -> None:
    config = tiny(task={"clients": 2}, rounds={"count": 2, "cohort": 2})
    with LocalFederation(tmp_path / "federation", 2) as federation:
        federation.launch(write_app(config, Deployment(out=str(tmp_path / "out")), tmp_path / "app"))
        state = tmp_path / "out" / STATE_FILE
        while not state.exists() or json.loads(state.read_text())["state"] == "running":
            federation.check()
            time.sleep(0.2)
        while not federation.has_ended():  # Flower notices a moment later
            time.sleep(0.2)
    run(config, tmp_path / "simulated")
    assert results(tmp_path / "out") == results(tmp_path / "simulated")
    assert list(federation.processes()) == []
