"""Asynchronous methods on real nodes: one is killed and comes back; the stored order is replayed to the same bits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fedreuse.core.listener import Listeners
from fedreuse.deploy.flower.app_folder import write_app
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.local.federation import LocalFederation
from fedreuse.deploy.local.run import follow
from fedreuse.runs.arrivals import replay_arrivals
from fedreuse.store.directory import RunDirectory
from tests.tiny import tiny

PATIENCE = float(os.environ.get("FEDREUSE_PATIENCE", "1"))  # a busy machine needs longer timeouts


@pytest.mark.deploy
def test_a_killed_node_is_no_error_and_the_replay_has_the_same_bits(tmp_path: Path) -> None:
    method = {"name": "lean", "budget": 0.9, "buffer": 2}
    config = tiny(method=method, task={"clients": 4}, rounds={"count": 8, "cohort": 4})
    with LocalFederation(tmp_path / "federation", 4) as federation:
        options = Deployment(out=str(tmp_path / "run"), timeout_seconds=60 * PATIENCE)
        federation.launch(write_app(config, options, tmp_path / "app"))
        directory = RunDirectory(tmp_path / "run")
        for row in follow(federation, directory, config, Listeners([])):
            if row["round"] == 2:
                federation.nodes[1].kill()
                federation.nodes[1].wait()  # a process that is left unwaited is a warning, which fails the test
            if row["round"] == 4:
                federation.start_node(1)
    assert list(federation.processes()) == []
    assert len(directory.metrics()) == 8
    rows = [row for row in directory.ledger() if row.direction == "up" and row.status == "in_time"]
    arrived = [(row.exchange, row.client) for row in rows]
    assert len(arrived) == len(set(arrived)) == 8 * 2  # no reply is lost or counted twice
    found = replay_arrivals(tmp_path / "run", tmp_path / "replayed")
    assert found.is_same
