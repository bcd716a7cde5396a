"""Replay of asynchronous runs: the same bits from the stored order and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.engine.executors.stored_order import End
from fedreuse.runs.arrivals import ends_of, replay_arrivals
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from tests.tiny import tiny

LINES = {"name": "profile", "up": {"low": 1e4, "high": 2e5}, "down": "1mbit", "compute": "1mflops"}


@pytest.mark.parametrize("method", [{"name": "lean", "budget": 0.9, "buffer": 2}, {"name": "fedasync"}])
def test_a_simulated_run_is_replayed_without_its_clock(method: dict[str, Any], tmp_path: Path) -> None:
    faults = {"name": "random", "lost": 0.3}
    config = tiny(devices=LINES, method=method, faults=faults, rounds={"count": 6, "cohort": 4})
    directory = run(config, tmp_path / "run")
    lost = sum(event.outcome == "lost" for event in directory.events())
    assert lost
    with pytest.raises(ConfigError, match="faults are simulated"):
        replay_arrivals(tmp_path / "run", tmp_path / "refused")
    directory = run(tiny(devices=LINES, method=method, rounds={"count": 6, "cohort": 4}), tmp_path / "healthy")
    found = replay_arrivals(tmp_path / "healthy", tmp_path / "again")
    assert found.is_same
    assert (found.arrivals, found.lost) == (len(directory.events()), 0)
    again = RunDirectory.open(tmp_path / "again")
    assert again.events() == directory.events()
    assert again.is_sealed  # the test split is not opened a second time


def test_what_cannot_be_replayed_is_refused(tmp_path: Path) -> None:
    run(tiny(), tmp_path / "run")
    with pytest.raises(ConfigError, match=r"the method waits for its cohorts, .* `fedreuse run`"):
        replay_arrivals(tmp_path / "run", tmp_path / "again")


def test_the_order_is_that_of_the_events(tmp_path: Path) -> None:
    config = tiny(devices=LINES, method={"name": "fedbuff", "buffer": 2}, rounds={"count": 3, "cohort": 4})
    directory = run(config, tmp_path / "run")
    assert ends_of(directory) == [End(event.client, "reply") for event in directory.events()]
