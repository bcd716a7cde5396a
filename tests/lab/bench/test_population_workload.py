"""The contender of the growth bench: its configurations, and what it tells of a round."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fedreuse.lab.bench.population_workload import METHODS, configure, memory_of_process


@pytest.mark.parametrize("method", METHODS)
def test_every_client_has_the_same_work(method: str) -> None:
    config = configure(method, 40, 10, 3)
    assert (config.task.clients, config.rounds.cohort, config.checkpoint_every) == (40, 10, 1)
    assert set(config.task.prepare(1).training.sizes.tolist()) == {5}


def test_memory_is_told_by_the_system() -> None:
    assert memory_of_process("VmHWM") >= memory_of_process("VmRSS") > memory_of_process("RssAnon") > 0


@pytest.mark.slow
def test_it_plays_when_it_is_told_to() -> None:
    task = {"method": "dg_fedreuse", "population": 20, "cohort": 4, "rounds": 9}
    words = [sys.executable, "-m", "fedreuse.lab.bench.population_workload", json.dumps(task)]
    done = subprocess.run(words, input="go\ngo\n", capture_output=True, text=True, check=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [facts["fresh"] + facts["reused"] for facts in told] == [4, 4]
    assert told[0]["fresh"] == 4
    assert {"seconds", "peak_bytes", "start_seconds", "start_cpu_seconds"} <= told[1].keys()
