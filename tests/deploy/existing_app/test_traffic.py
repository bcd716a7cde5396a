"""Counted bytes: those of the messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from flwr.app import RecordDict
from flwr.serverapp.strategy import (
    FedAvg,
)

from fedreuse.deploy import Lean
from fedreuse.deploy.existing_app.traffic import Traffic
from tests.deploy.compressed_app import FLOWER, run


def test_the_counted_bytes_are_those_of_the_messages(tmp_path: Path) -> None:
    strategy = Lean(FedAvg(**FLOWER), budget=0.2)
    _, grid = run(strategy, tmp_path)
    for way in ("down", "up"):
        crossed = sum(size for _, direction, size in grid.crossed if direction == way)
        assert strategy.traffic.total(way) == pytest.approx(crossed, rel=0.03)
    assert strategy.traffic.added_by_flower() is None  # no requests cross in this process
    assert not [line for line in strategy.traffic.lines() if "Flower" in line]


def test_the_table_has_totals_and_shares() -> None:
    traffic = Traffic()
    traffic.sent["train", "down"], traffic.dense["train", "down"] = 25, 100
    traffic.sent["first contact", "down"] = 5
    assert traffic.total("down") == 30
    assert traffic.lines()[-1].split() == ["share", "30.00%", "0.00%"]
    assert traffic.to_plain()["sent"] == {"first contact": {"down": 5, "up": 0}, "train": {"down": 25, "up": 0}}


def test_nodes_poll_from_the_submission_of_the_run_and_later_ones_from_their_first_message() -> None:
    traffic = Traffic(is_on_wire=True, waited=300.0)
    traffic.down(1, RecordDict(), None)
    traffic.worked(1, 0.0)
    traffic.down(2, RecordDict(), None)
    added = traffic.added_by_flower()
    assert added is not None
    # 100 polls of 859 bytes and 15 heartbeats of 875 bytes
    assert added["waiting"]["up"] == 100 * 859 + 15 * 875
