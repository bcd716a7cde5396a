"""Processor time per client by hand, and a real match on a few clients."""

from __future__ import annotations

from typing import Any

import pytest

from fedreuse.lab.bench.crowd import run, tables
from fedreuse.lab.bench.crowd_workload import configure, play_products


def test_ratios_by_hand() -> None:
    rows = [
        {"network": "mlp", "contender": "plain PyTorch loop", "process_seconds": [0.2, 0.4], "clients": [100, 100]},
        {"network": "mlp", "contender": "engine, one by one", "process_seconds": [0.1, 0.1], "clients": [100, 50]},
    ]
    loop, engine = tables(rows)[0].rows
    assert loop == ("mlp", "plain PyTorch loop", "3.000 (2.000-4.000)", "-", "-")
    # 1 ms and 2 ms per client: 2 / 1 and 4 / 2
    assert engine[2:] == ("1.500 (1.000-2.000)", "-1.500 (-2.000--1.000)", "2.00 (2.00-2.00)")


def test_products_of_an_lstm_for_whole_groups_of_clients() -> None:
    class Turn:
        facts: dict[str, Any]

        def wait(self) -> bool:
            return not hasattr(self, "facts")

        def done(self, **facts: Any) -> None:
            self.facts = facts

    turn = Turn()
    play_products(turn, configure("lstm", 40, 2, cohort=20), 1)  # type: ignore[arg-type]
    assert turn.facts["clients"] == 16
    rows = [
        {"network": "lstm", "contender": name, "process_seconds": [1.0], "clients": [16]}
        for name in ("plain PyTorch loop", "matrix products of 16 clients together, alone")
    ]
    assert "torch.bmm" in tables(rows)[0].legend


@pytest.mark.slow
@pytest.mark.long
def test_a_real_match_on_a_few_clients() -> None:
    rows = run(["linear"], clients=20, turns=1)
    assert {tuple(row["clients"]) for row in rows} == {(100,)}  # five rounds of all clients
    assert all(row["process_seconds"][0] > 0 for row in rows)
    assert tables(rows)[0].rows
