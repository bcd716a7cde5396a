"""FedJAX as a contender: its work is that of the run, and it is left out where it is not installed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from benchmarks.peers import match
from fedreuse.lab.bench.crowd_workload import configure
from fedreuse.lab.bench.peer_work import PeerWork


def test_an_absent_environment_is_left_out(tmp_path: Path) -> None:
    assert match.small_commands(tmp_path, configure("linear", 10, 3), tmp_path, 5) == {}


def test_the_work_is_that_of_the_run(tmp_path: Path) -> None:
    python = tmp_path / "fedjax" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    config = configure("linear", 10, 3, cohort=4)
    (command,) = match.small_commands(tmp_path, config, tmp_path, 5).values()
    assert (command.words[0], command.words[2]) == (str(python), "benchmarks.peers.fedjax_loop")
    task = json.loads(command.words[3])
    assert (task["lr"], task["batch"], task["epochs"], task["rounds_per_turn"]) == (0.05, 10, 1, 5)
    with np.load(task["work"]) as stored:
        assert stored["cohorts"].shape == (3, 4)
        assert np.diff(stored["offsets"]).tolist() == [20] * 10


def test_other_simulators_have_the_same_work(tmp_path: Path) -> None:
    for name in ("fedjax", "pfl", "flower"):
        python = tmp_path / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.touch()
    commands = match.small_commands(tmp_path, configure("linear", 10, 3, cohort=4), tmp_path, 5)
    assert [command.words[2].rpartition(".")[2] for command in commands.values()] == [
        "fedjax_loop", "pfl_research", "flower",
    ]  # fmt: skip
    work = PeerWork.load(json.loads(commands["Flower 1.41 simulation"].words[3])["work"])
    assert (work.inputs.shape, work.cohorts.shape, work.training["lr"]) == ((200, 64), (3, 4), 0.05)
