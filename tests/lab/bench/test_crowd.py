"""Processor time per client by hand, and a real match on a few clients."""

from __future__ import annotations

import pytest

from fedreuse.lab.bench.crowd import run, tables


def test_ratios_by_hand() -> None:
    rows = [
        {"network": "mlp", "contender": "plain PyTorch loop", "process_seconds": [0.2, 0.4], "clients": [100, 100]},
        {"network": "mlp", "contender": "engine, one by one", "process_seconds": [0.1, 0.1], "clients": [100, 50]},
    ]
    loop, engine = tables(rows)[0].rows
    assert loop == ("mlp", "plain PyTorch loop", "3.000 (2.000-4.000)", "-", "-")
    # 1 ms and 2 ms per client: 2 / 1 and 4 / 2
    assert engine[2:] == ("1.500 (1.000-2.000)", "-1.500 (-2.000--1.000)", "2.00 (2.00-2.00)")


@pytest.mark.slow
@pytest.mark.long
def test_a_real_match_on_a_few_clients() -> None:
    rows = run(["linear"], clients=20, turns=1)
    assert {tuple(row["clients"]) for row in rows} == {(100,)}  # five rounds of all clients
    assert all(row["process_seconds"][0] > 0 for row in rows)
    assert tables(rows)[0].rows
