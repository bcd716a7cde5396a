"""What both ends hold: one model for FedAvg whatever the population, and a model per client where each has its own."""

from __future__ import annotations

import pytest

from fedreuse.lab.bench.needs import METHODS, run, tables


@pytest.mark.slow
def test_states_by_method() -> None:
    rows = {row["method"]: row for row in run(clients=200, millions=10, cohort=20)}
    assert list(rows) == list(METHODS)
    model = rows["fedavg"]["model_bytes"]
    assert model == 40_000_000
    # FedAvg: the model alone; after 1,000 rounds every client of 200 was selected
    assert rows["fedavg"]["server_bytes"] == model
    assert rows["lean 0.05"]["server_bytes"] > 200 * model
    assert rows["lean 0.05, server_memory: shared"]["server_bytes"] < 20 * model
    assert rows["fed_ef, Top-K 0.01"]["client_bytes"] == model
    (table,) = tables(list(rows.values()))
    assert table.rows[0] == ("fedavg", "0.0", "1.0", "0.0")
    assert "200 clients, 10 million weights" in table.title
