"""Measures of a trial: means over runs, read from their directories."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from fedreuse.studies.tuning.measures import Constraint, Measure, bytes_of
from tests.tiny import tiny


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return run(tiny(test="sealed"), tmp_path_factory.mktemp("runs") / "run")


@pytest.mark.slow
def test_numbers_are_those_of_the_run(done: RunDirectory) -> None:
    scores = done.metric("validation_score")[1]
    assert Measure("validation").of([done]) == scores[-1]
    assert Measure("best_validation").of([done, done]) == scores.max()
    assert Measure("active_fraction").of([done]) == 1  # nobody is reused by FedAvg
    assert Measure("flops").of([done]) == done.summary["work"]["flops"]
    told = done.summary["communication"]["messages"]
    assert Measure("bytes").of([done]) == told["up_bytes"] + told["down_bytes"]
    assert Measure("saving", "messages", "up").of([done]) == told["up_saving"]


@pytest.mark.slow
def test_bytes_to_a_target_end_with_the_round_that_reaches_it(done: RunDirectory) -> None:
    assert Measure("bytes_to_target", target=0.0).of([done]) == bytes_of(done, "messages", "both", 1)
    assert Measure("bytes_to_target", target=2.0).of([done]) == inf


def test_simulated_seconds_up_to_a_target(tmp_path: Path) -> None:
    done = run(tiny(devices={"name": "profile", "up": "1mbit", "down": "1mbit"}), tmp_path / "timed")
    spent = [row["simulated_seconds"] for row in done.metrics()]
    assert Measure("simulated_seconds").of([done]) == sum(spent)
    assert Measure("simulated_seconds_to_target", target=0.0).of([done]) == spent[0]
    assert Measure("simulated_seconds_to_target", target=2.0).of([done]) == inf
    assert Measure("simulated_seconds").goal == "minimize"


def test_simulated_seconds_need_devices(done: RunDirectory) -> None:
    with pytest.raises(ConfigError, match=r"no simulated time.*set devices"):
        Measure("simulated_seconds").of([done])


def test_a_constraint_says_by_how_much_it_is_broken(done: RunDirectory) -> None:
    active = Measure("active_fraction")
    assert Constraint(active, at_most=0.75).excess([done]) == 0.25
    assert Constraint(active, at_least=0.75).excess([done]) == -0.25


def test_goals_and_mistakes(tmp_path: Path) -> None:
    assert (Measure("saving").goal, Measure("bytes").goal) == ("maximize", "minimize")
    with pytest.raises(ConfigError, match="target belongs to bytes_to_target"):
        Measure("bytes_to_target")
    with pytest.raises(ConfigError, match="did you mean 'messages'"):
        Measure("bytes", "mesages")
