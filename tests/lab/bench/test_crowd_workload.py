"""The contenders of the benchmark of small clients: equal work, and one report per turn."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fedreuse.lab.bench.crowd_workload import NETWORKS, configure


@pytest.mark.parametrize("network", NETWORKS)
def test_every_client_has_twenty_examples(network: str) -> None:
    config = configure(network, 1000, 3, ["local.batch=5"], cohort=7)
    assert (config.task.clients, config.rounds.cohort, config.local.batch, config.checkpoint_every) == (1000, 7, 5, 1)
    assert set(config.task.prepare(1).training.sizes.tolist()) == {20}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["engine", "loop"])
def test_a_turn_has_several_rounds(kind: str) -> None:
    task = {"kind": kind, "network": "linear", "clients": 6, "rounds": 9, "rounds_per_turn": 2, "cohort": 3}
    words = [sys.executable, "-m", "fedreuse.lab.bench.crowd_workload", json.dumps(task)]
    done = subprocess.run(words, input="go\ngo\n", capture_output=True, text=True, check=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [facts["clients"] for facts in told] == [6, 6]
    assert all(facts["process_seconds"] > 0 for facts in told)
