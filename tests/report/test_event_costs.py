"""Bytes per event, computed by hand: per fresh update, per reuse, per round."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.accounting.ledger import LedgerRow
from fedreuse.report.event_costs import event_costs, event_table
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
