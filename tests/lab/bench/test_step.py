"""The bench of the training step: its table by hand, the same losses from all contenders, and a real pass."""

from __future__ import annotations

import pytest
from torch import nn

from fedreuse.lab.bench.step import plain_network, run, tables
from fedreuse.learning.networks.small_maps import SmallMapConv2d


def test_ratios_by_hand() -> None:
    rows = [
        {"contender": "plain torch", "batch": 64, "seconds": [0.2, 0.4], "cpu_seconds": [0.2, 0.2]},
        {"contender": "and products on small maps", "batch": 64, "seconds": [0.1, 0.1], "cpu_seconds": [0.1, 0.1]},
    ]
    (table,) = tables(rows)
    assert table.rows[0][4] == "1.00 (1.00-1.00)"
    assert table.rows[1] == (
        "64", "and products on small maps", "100 (100-100)", "100 (100-100)", "3.00 (2.00-4.00)", "2.00 (2.00-2.00)",
    )  # fmt: skip


def test_the_plain_network_has_torchs_convolutions() -> None:
    layers = [layer for layer in plain_network().modules() if isinstance(layer, nn.Conv2d)]
    assert len(layers) == 20
    assert not any(isinstance(layer, SmallMapConv2d) for layer in layers)


@pytest.mark.slow
def test_a_real_pass() -> None:
    told: list[str] = []
    rows = run([2], repeats=1, tell=told.append)
    assert len(rows) == len(told) == len(tables(rows)[0].rows) == 3
    assert all(len(row["seconds"]) == len(row["cpu_seconds"]) == 1 for row in rows)
