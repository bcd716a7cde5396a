"""The fault matrix, on real processes: nodes, stores, the server app and replies fail, and the run ends as it must.

"Data lost: none" is shown bit by bit: the model at the end equals that of a simulation in which the same replies were
lost, though processes died and came back in between.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from fedreuse.store.directory import RunDirectory
from tests.deploy.chaos import Fault, Finding, Plan, Trial, matrix
from tests.tiny import tiny

pytestmark = pytest.mark.slow
PATIENCE = float(os.environ.get("FEDREUSE_PATIENCE", "1"))  # a busy machine needs longer timeouts
EF = {"update": {"name": "error_feedback", "codec": {"name": "top_k", "ratio": 0.3}}}
RESUMED = "resumed from the checkpoint; the round that was cut short began again"


def trial_of(folder: Path, clients: int, rounds: int, plan: Plan, timeout_seconds: float, **parts: Any) -> Trial:
    """Every client in every round; a residual at every client, so that a memory lost would show."""
    config = tiny(task={"clients": clients}, rounds={"count": rounds, "cohort": clients}, uplink=EF, **parts)
    return Trial(folder, config, plan, timeout_seconds)


def assert_nothing_was_lost(trial: Trial, wipes: dict[int, set[int]]) -> None:
    found, simulated = RunDirectory.open(trial.out), trial.simulated(wipes)
    assert found.events() == simulated.events()
    assert [row["round"] for row in found.metrics()] == list(range(1, trial.config.rounds.count + 1))
    measured, simulated_bytes = found.traffic(), simulated.traffic()
    assert all(measured["transport"].up >= measured["messages"].up)  # the meter saw every round, whoever died
    assert "transport" not in simulated_bytes
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


@pytest.mark.deploy
def test_one_fault_of_each_class(tmp_path: Path) -> None:
    """A spoiled reply, a node killed in the middle of its work, a wiped store, the server app killed and resumed."""
    plan = {0: {2: "garbage", 3: "hold"}, 1: {2: "wipe"}, 2: {4: "wrong_kind"}}
    trial = trial_of(tmp_path, 3, 5, plan, timeout_seconds=60 * PATIENCE)
    with trial:
        trial.launch()
        trial.wait_for_hold(0, 3)
        trial.signal_node(0, signal.SIGKILL)
        trial.federation.start_node(0)
        trial.kill_server()  # in the middle of round 3
        killed = time.monotonic()
        trial.launch(resume=True)
        trial.wait_for_end()
    faults = [Fault("reply is garbage", 0, 2), Fault("store wiped", 1, 2), Fault("reply of another kind", 2, 4)]
    findings = [trial.finding(fault) for fault in faults]
    findings.append(trial.finding(Fault("node and server app killed, both started again", 0, 3, killed, RESUMED)))
    publish("One fault of each class", findings)
    assert [one.rounds_lost for one in findings[:3]] == [1, 1, 1]
    assert "reply of client 0 refused" in trial.log()
    assert "reply of client 2 refused: the reply is 'score' (" in trial.log()
    assert_nothing_was_lost(trial, {2: {1}})


@pytest.mark.deploy
def test_the_whole_matrix(tmp_path: Path) -> None:
    """Six clients: a round of spoiled replies, a round of failing nodes, a round of lost memories, a killed server."""
    timeout = 90 * PATIENCE
    plan: Plan = {
        0: {2: "garbage", 4: "hold", 7: "wrong_kind"},
        1: {2: "too_large", 4: "hold"},
        2: {2: "not_finite", 4: "hold", 7: "no_groups"},
        3: {2: "wrong_run", 4: f"wait {timeout + 20}", 7: "wrong_client"},
        4: {2: "duplicate", 4: "cut_short", 6: "wipe"},
        5: {2: "wait 5", 6: "corrupt"},
    }
    trial = trial_of(tmp_path, 6, 8, plan, timeout)
    with trial:
        trial.launch()
        for client in (0, 1, 2):
            trial.wait_for_hold(client, 4)
        trial.signal_node(0, signal.SIGKILL)
        trial.signal_node(1, signal.SIGSTOP)
        trial.release(1, 4)
        trial.meter.cut(2)
        trial.release(2, 4)
        trial.wait_for_round(4)
        trial.federation.start_node(0)
        trial.signal_node(1, signal.SIGCONT)
        trial.meter.restore(2)
        cured = time.monotonic()
        trial.wait_for_round(6)
        time.sleep(1)
        trial.kill_server()  # in the middle of round 7
        killed = time.monotonic()
        trial.launch(resume=True)
        trial.wait_for_end()
    faults = [
        Fault("reply is garbage", 0, 2),
        Fault("reply is cut short", 4, 4),
        Fault("reply is too large", 1, 2),
        Fault("reply is not finite", 2, 2),
        Fault("reply of another kind", 0, 7),
        Fault("reply without its groups", 2, 7),
        Fault("reply of a wrong run", 3, 2),
        Fault("reply for another client", 3, 7),
        Fault("reply duplicated (that of the round before)", 4, 2),
        Fault("reply late", 3, 4),
        Fault("node slow", 5, 2),
        Fault("node killed, restarted", 0, 4, cured),
        Fault("node hung (stopped), goes on", 1, 4, cured),
        Fault("node partitioned, joined again", 2, 4, cured),
        Fault("store wiped", 4, 6),
        Fault("store corrupt", 5, 6),
        Fault("server app killed, resumed", 5, 7, killed, RESUMED),
    ]
    findings = {fault.name: trial.finding(fault) for fault in faults}
    publish("Every fault", list(findings.values()))
    spoiled = [one for name, one in findings.items() if name.startswith("reply")]
    assert all(one.rounds_lost >= 1 for one in spoiled)
    assert all("refused" in one.happened for one in spoiled if one.fault != "reply late")
    assert findings["node slow"].rounds_lost == 0
    assert all(
        one.rounds_lost >= 1 for name, one in findings.items() if name.startswith(("node k", "node h", "node p"))
    )
    assert all(findings[f"store {how}"].happened.startswith("the client said so") for how in ("wiped", "corrupt"))
    assert {event.outcome for event in RunDirectory.open(trial.out).events() if event.round_number == 8} == {"fresh"}
    assert_nothing_was_lost(trial, {6: {4, 5}})


@pytest.mark.deploy
def test_resident_workers_fail_and_no_round_is_lost(tmp_path: Path) -> None:
    """One is killed, as the kernel does it when memory is short; one hangs; one is left no memory: all are replaced."""
    plan: Plan = {client: {2: "hold"} for client in range(3)}
    trial = trial_of(tmp_path, 3, 4, plan, timeout_seconds=120 * PATIENCE)
    with trial:
        trial.launch()
        for client in range(3):
            trial.wait_for_hold(client, 2)
        workers = [trial.worker_of(client) for client in range(3)]
        os.kill(workers[0], signal.SIGKILL)
        os.kill(workers[1], signal.SIGSTOP)
        resource.prlimit(workers[2], resource.RLIMIT_AS, (1 << 20, 1 << 20))
        failed = time.monotonic()
        for client in range(3):
            trial.release(client, 2)
        trial.wait_for_end()
        assert not set(workers) & {trial.worker_of(client) for client in range(3)}
    words = {
        "resident worker killed": "replaced; the message waited for it",
        "resident worker hung (stopped)": "the message's own process answered; replaced",
        "resident worker out of memory": "the message's own process answered; replaced",
    }
    findings = [
        trial.finding(Fault(name, client, 2, failed, happened)) for client, (name, happened) in enumerate(words.items())
    ]
    publish("Resident workers", findings)
    assert [one.rounds_lost for one in findings] == [0, 0, 0]
    assert_nothing_was_lost(trial, {})


@pytest.mark.deploy
def test_when_everybody_is_gone_the_run_ends_cleanly_and_goes_on_later(tmp_path: Path) -> None:
    """All nodes cut off: the round is tried again, then the run ends with a reason; resumed later, it completes."""
    plan: Plan = {client: {2: "hold"} for client in range(2)}
    trial = trial_of(tmp_path, 2, 3, plan, timeout_seconds=40 * PATIENCE)
    with trial:
        trial.launch()
        for client in range(2):
            trial.wait_for_hold(client, 2)
            trial.meter.cut(client)
        trial.wait_for_end("failed")
        ended = time.monotonic()
        assert [row["round"] for row in RunDirectory.open(trial.out).metrics()] == [1]
        for client in range(2):
            trial.meter.restore(client)
            trial.signal_node(client, signal.SIGKILL)
            trial.federation.start_node(client)
        trial.launch(resume=True)
        trial.wait_for_end()
    assert "the round is tried again" in trial.log()
    publish("Everybody gone", [trial.finding(Fault("all nodes gone, run ended, resumed", 0, 2, ended, RESUMED))])
    assert_nothing_was_lost(trial, {})
