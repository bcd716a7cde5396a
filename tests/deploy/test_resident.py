"""A whole run through a resident worker that is killed and runs out of memory: the bits of a simulation.

Flower's transport is left out, the worker and its keeper are real processes.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Message

from fedreuse.deploy.flower.flat_config import to_flat
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.flower.server import serve
from fedreuse.deploy.resident import forwarding
from fedreuse.deploy.resident.keeper import Keeper
from fedreuse.deploy.resident.line import VARIABLE
from fedreuse.runs.launch import run
from tests.deploy.fake_grid import FakeGrid
from tests.tiny import results, tiny

EF = {"update": {"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.3}}}


@pytest.mark.deploy
def test_a_run_through_workers_that_die_has_the_bits_of_a_simulation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny(task={"clients": 2}, rounds={"count": 4, "cohort": 2}, uplink=EF)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "worker"))
    for patience in ("forwarding._REPLACED_SECONDS", "line.GREETING_SECONDS"):
        monkeypatch.setattr(f"fedreuse.deploy.resident.{patience}", 600.0)
    keeper, answers = Keeper(tmp_path / "worker"), list[bool]()
    played = forwarding._played

    def noted(*job: Any) -> Any:
        answer = played(*job)
        answers.append(answer is not None)
        return answer

    def spoil(request: Message, reply: Message) -> Message:
        """After a round's first reply: as the kernel takes a process, or leaves it no memory."""
        assert keeper.worker is not None
        if request.metadata.dst_node_id == min(grid.contexts):
            if request.metadata.group_id == "2":
                os.kill(keeper.worker.pid, signal.SIGKILL)
                keeper.worker.wait()
            if request.metadata.group_id == "3":
                resource.prlimit(keeper.worker.pid, resource.RLIMIT_AS, (1 << 20, 1 << 20))
        return reply

    monkeypatch.setattr(forwarding, "_played", noted)
    flat = to_flat(config, Deployment(out=str(tmp_path / "out")))
    grid = FakeGrid(tmp_path, flat, range(2))
    grid.spoil = spoil
    keeper.start()
    while keeper.worker is None:
        time.sleep(0.01)
    try:
        directory = serve(grid, flat)
    finally:
        keeper.stop()
    assert answers.count(False) <= 1, answers  # who runs out of memory in the middle leaves the message to its process
    assert len(answers) == 2 + 4 * 2
    assert {event.outcome for event in directory.events()} == {"fresh"}
    assert results(directory) == results(run(config, tmp_path / "simulated"))
