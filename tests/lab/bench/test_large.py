"""Memory of large models: configurations that run, and tables by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.config.run_config import load
from fedreuse.core.errors import ConfigError
from fedreuse.lab.bench.large import WORKLOADS, configuration, run, tables
from fedreuse.learning.trainer import initial_network


@pytest.mark.parametrize("workload", WORKLOADS)
def test_configurations_are_valid_and_have_the_size_that_was_asked_for(workload: str, tmp_path: Path) -> None:
    config = load(configuration(workload, 2, 3, tmp_path))
    assert (config.server_store, config.client_store, config.rounds.cohort) == ("disk", "disk", 3)
    if workload in ("dense", "lean"):
        size = initial_network(config.network, (64,), 10, 1).schema.weights.size
        assert 1.9e6 < size < 2.1e6


def test_an_unknown_workload_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must be one of dense, lean, transformer, lora"):
        configuration("huge", 1, 1, tmp_path)


@pytest.mark.slow
def test_a_small_model_is_measured_in_both_processes(tmp_path: Path) -> None:
    rows = run(["dense"], millions=0.1, clients=2, folder=tmp_path)
    assert {row["role"] for row in rows} == {"server", "client"}
    assert {"all", "build the network"} <= {row["phase"] for row in rows}
    assert all(row["peak_bytes"] >= 0 for row in rows if row["phase"] == "all")


def test_tables_by_hand() -> None:
    row = {
        "workload": "dense", "clients": 10, "role": "server", "phase": "aggregate", "peak_bytes": 1_000_000_000,
        "model_bytes": 400_000_000, "seconds": 2.0, "cpu_seconds": 1.25,
    }  # fmt: skip
    (table,) = tables([row])
    assert table.rows == (("server", "aggregate", "1,000", "2.50", "1.2", "2.0"),)
    assert "400 MB of weights, 10 clients" in table.title
