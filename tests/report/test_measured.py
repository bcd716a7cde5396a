"""Measured costs by hand: per fresh update, per reuse, per round; and the way to a target."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.accounting.ledger import LedgerRow
from fedreuse.report.measured import event_costs, event_table, reached, target_table, targets_over_seeds
from fedreuse.report.results import read_run
from fedreuse.store.directory import RunDirectory
from tests.report.runs import write_run


def measured(number: int, client: int, direction: str, seen: int) -> LedgerRow:
    return LedgerRow(number, 1, client, direction, "", "training", "measured", {"transport": seen}, 0, 0, 0)


SEEN = [
    # round 1: both train; round 2: client 0 trains, client 1 is reused, client 2 was never selected
    measured(1, 0, "up", 300), measured(1, 0, "down", 1000), measured(1, 1, "up", 500), measured(1, 1, "down", 1200),
    measured(2, 0, "up", 400), measured(2, 0, "down", 1100), measured(2, 1, "up", 70), measured(2, 2, "up", 8),
]  # fmt: skip


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    found = write_run(tmp_path / "run", scores=(0.4, 0.6))
    rows = [*found.ledger(), *SEEN]
    monkeypatch.setattr(RunDirectory, "ledger", lambda _self: rows)
    return found


def test_costs_by_hand(directory: RunDirectory) -> None:
    costs = {cost.event: cost for cost in event_costs(directory)}
    fresh, reuse = costs["fresh update"], costs["reuse event"]
    assert (fresh.number, reuse.number) == (3, 1)
    # (300 + 500 + 400) / 3 up and (1000 + 1200 + 1100) / 3 down; messages of 30 and 110 bytes, 20 and 100 in fields
    assert fresh.bytes_of["transport", "up"] == 400
    assert fresh.bytes_of["transport", "down"] == 1100
    assert fresh.bytes_of["messages", "up"] == 30
    assert fresh.bytes_of["all_fields", "down"] == 100
    assert reuse.bytes_of["transport", "up"] == 70
    assert reuse.bytes_of["messages", "up"] == 0
    assert costs["client that was not selected"].bytes_of["transport", "up"] == 8
    # (300 + 500 + 400 + 70 + 8) / 2
    assert costs["whole round, all clients"].bytes_of["transport", "up"] == 639
    assert ("interface", "up") not in fresh.bytes_of


def test_the_table_shows_the_convention_beside_the_measurement(directory: RunDirectory) -> None:
    table = event_table(directory)
    assert table.headers[:4] == ("mean of (number)", "paper\nup", "all_fields\nup", "all_fields\ndown")
    row = next(row for row in table.rows if row[0] == "reuse event (1)")
    assert row[1] == "16"
    assert row[table.headers.index("transport\nup")] == "70"
    assert [row[1] for row in table.rows if "reuse" not in row[0]] == ["-", "-", "-"]


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
