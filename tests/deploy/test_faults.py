"""The fault matrix, on real processes: nodes, stores, the server app and replies fail, and the run ends as it must.

"Data lost: none" is shown bit by bit: the model at the end equals that of a simulation in which the same replies were
lost, though processes died and came back in between.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from fedreuse.runs.directory import RunDirectory
from tests.deploy.chaos import Fault, Finding, Plan, Trial, matrix
from tests.tiny import tiny

pytestmark = pytest.mark.slow
EF = {"update": {"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.3}}}


def trial_of(folder: Path, clients: int, rounds: int, plan: Plan, timeout_seconds: float, **parts: Any) -> Trial:
    """Every client in every round; a residual at every client, so that a memory lost would show."""
    config = tiny(task={"clients": clients}, rounds={"count": rounds, "cohort": clients}, uplink=EF, **parts)
    return Trial(folder, config, plan, timeout_seconds)


def assert_nothing_was_lost(trial: Trial, wipes: dict[int, set[int]]) -> None:
    found, simulated = RunDirectory.open(trial.out), trial.simulated(wipes)
    assert found.events() == simulated.events()
    assert [row["round"] for row in found.metrics()] == list(range(1, trial.config.rounds.count + 1))
    left, right = found.model(), simulated.model()
    assert left.keys() == right.keys()
    assert all(left[name].tobytes() == right[name].tobytes() for name in left)


def publish(title: str, findings: list[Finding]) -> None:
    """Print the matrix, and add it to a file if one is named."""
    text = f"## {title}\n\n{matrix(findings)}\n"
    print(f"\n{text}")
    if place := os.environ.get("FEDREUSE_FAULT_MATRIX"):
        with Path(place).open("a") as file:
            file.write(text)


def test_one_fault_of_each_class(tmp_path: Path) -> None:
    """A spoiled reply, a node killed in the middle of its work, a wiped store, the server app killed and resumed."""
    plan = {0: {2: "garbage", 3: "hold"}, 1: {2: "wipe"}}
    trial = trial_of(tmp_path, 3, 4, plan, timeout_seconds=60)
    with trial.federation as federation:
        trial.launch()
        trial.wait_for_hold(0, 3)
        trial.signal_node(0, signal.SIGKILL)
        federation.start_node(0)
        trial.kill_server()  # in the middle of round 3
        killed = time.monotonic()
        trial.launch(resume=True)
        trial.wait_for_end()
    findings = [trial.finding(Fault("reply is garbage", 0, 2)), trial.finding(Fault("store wiped", 1, 2))]
    findings.append(trial.finding(Fault("node and server app killed, both restarted", 0, 3, killed)))
    publish("One fault of each class", findings)
    assert [one.rounds_lost for one in findings[:2]] == [1, 1]
    assert "reply of client 0 refused" in trial.log()
    assert_nothing_was_lost(trial, {2: {1}})
