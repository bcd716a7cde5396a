"""Costs up to a validation target, on runs of two rounds: validation 0.4, then 0.6."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.report.results import read_run
from fedreuse.report.statistics.targets import Arrival
from fedreuse.report.target_costs import arrivals, reached, target_table, targets_over_seeds
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from tests.report.runs import write_run
from tests.report.test_event_costs import SEEN
from tests.tiny import tiny


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """A run whose ledger has the rows of a meter."""
    found = write_run(tmp_path / "run", scores=(0.4, 0.6))
    rows = [*found.ledger(), *SEEN]
    monkeypatch.setattr(RunDirectory, "ledger", lambda _self: rows)
    return found


@pytest.mark.parametrize(
    ("target", "spent", "is_reached"),
    [
        (0.3, {"rounds": 1, "bytes": 60, "flops": 2e9, "seconds": 1.5}, True),
        (0.6, {"rounds": 2, "bytes": 90, "flops": 3e9, "seconds": 3.0}, True),
        (0.7, {"rounds": 2, "bytes": 90, "flops": 3e9, "seconds": 3.0}, False),
    ],
)
def test_what_was_spent_up_to_the_target(
    tmp_path: Path, target: float, spent: dict[str, float], is_reached: bool
) -> None:
    result = read_run(write_run(tmp_path / "run"))
    found = arrivals(result, target, "messages", "up")
    assert found == {cost: Arrival(number, is_reached) for cost, number in spent.items()}


def test_a_round_without_an_evaluation_reaches_nothing(tmp_path: Path) -> None:
    result = read_run(write_run(tmp_path / "run", scores=(None, 0.6)))
    assert arrivals(result, 0.0, "messages", "both")["rounds"] == Arrival(2, True)


def test_the_way_to_a_target(directory: RunDirectory) -> None:
    result = read_run(directory, "Top-K")
    there = reached(result, 0.6)
    assert there is not None
    assert (there.round_number, there.seconds) == (2, 3.0)
    assert there.bytes_of["transport", "up"] == 1278
    first = reached(result, 0.4)
    assert first is not None
    assert first.bytes_of["transport", "up"] == 800
    assert reached(result, 0.61) is None


def test_not_reached_is_kept_in_the_table(directory: RunDirectory) -> None:
    result = read_run(directory, "Top-K")
    table = target_table([result], 0.6)
    assert table.rows[0][:3] == ("Top-K, seed 1", "2", "3.0")
    assert "60.00 %" in table.title
    assert all(header.count("\n") == 1 for header in table.headers[1:])  # what a grouped table needs
    assert "transport" in table.legend
    assert target_table([result], 0.9).rows == (("Top-K, seed 1", "no", "-"),)
    at = {header.split("\n")[0] for header in table.headers[3:]}
    assert at >= {"update_fields", "symmetric_fields", "all_fields", "messages", "transport"}


@pytest.mark.slow
def test_the_way_over_seeds_censors_runs_that_never_arrive(tmp_path: Path) -> None:
    scores = {1: (0.4, 0.6), 2: (0.6, 0.7), 3: (0.4, 0.5)}  # they arrive in rounds 2 and 1, and not at all
    results = [read_run(write_run(tmp_path / str(seed), seed=seed, scores=scores[seed]), "v") for seed in scores]
    table = targets_over_seeds(results, 0.6)
    assert table is not None
    # a third is there after round 1, two thirds after round 2; messages of round 1: 2 x (110 + 30) B, round 2: 140 B
    assert table.rows[0][:4] == ("v", "2 of 3", "2", "3")
    assert table.rows[0][table.headers.index("messages\nboth, MB")] == "0.00042"
    missed = targets_over_seeds(results, 0.9)
    assert missed is not None
    assert set(missed.rows[0][1:]) == {"0 of 3", "-"}
    assert targets_over_seeds(results[:1], 0.6) is None


def test_simulated_seconds_stand_beside_rounds_and_bytes(tmp_path: Path) -> None:
    lines = {"name": "profile", "up": "1mbit", "down": "1mbit"}
    runs = [read_run(run(tiny(devices=lines, seed=seed), tmp_path / str(seed))) for seed in (5, 6)]
    first = reached(runs[0], 0.0)
    assert first is not None
    assert first.simulated_seconds == runs[0].history.metrics[0]["simulated_seconds"]
    table = target_table(runs, 0.0)
    assert "reached in\nsimulated s" in table.headers
    assert table.rows[0][2] == f"{first.simulated_seconds:,.1f}"
    over = targets_over_seeds(runs, 0.0)
    assert over is not None
    assert "median\nsimulated s" in over.headers
    assert arrivals(runs[0], 2.0, "messages", "both")["simulated_seconds"].cost == runs[0].simulated_seconds
