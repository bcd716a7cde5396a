"""Strategies around a strategy: what the inner one computes, budgets, and strategies that are refused."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.serverapp.strategy import (
    Bulyan,
    DifferentialPrivacyClientSideFixedClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAdam,
    FedAvg,
    FedMedian,
    FedXgbBagging,
    Krum,
)

from fedreuse.core.errors import ConfigError, RunError
from fedreuse.deploy import Compressed, Lean
from tests.deploy.compressed_app import EXACT, FLOWER, NODES, app_of, arrays_of, initial, run


def test_with_dense_links_it_is_the_strategy_itself(tmp_path: Path) -> None:
    own, _ = run(FedAvg(**FLOWER), tmp_path / "own", app_of(mods=()))
    wrapped, _ = run(Compressed(FedAvg(**FLOWER), **EXACT), tmp_path / "wrapped")
    for name, array in arrays_of(own).items():
        np.testing.assert_allclose(arrays_of(wrapped)[name], array, rtol=0, atol=2e-6)  # x + (y - x) rounds once
    assert wrapped.evaluate_metrics_clientapp.keys() == {1, 2, 3, 4}


@pytest.mark.parametrize("make", [FedAvg, FedAdam, lambda **k: Krum(num_malicious_nodes=0, **k)])
def test_lean_learns_with_any_aggregation(make: Any, tmp_path: Path) -> None:
    own, _ = run(make(**FLOWER), tmp_path / "own", app_of(mods=()), rounds=12)
    strategy = Lean(make(**FLOWER), budget=0.2)
    wrapped, grid = run(strategy, tmp_path / "lean", rounds=12)
    start = initial()["w"].numpy()
    far = np.linalg.norm(arrays_of(own)["w"] - start)
    assert np.linalg.norm(arrays_of(wrapped)["w"] - arrays_of(own)["w"]) < 0.25 * far
    for way in ("down", "up"):
        crossed = sum(size for _, direction, size in grid.crossed if direction == way)
        assert crossed < 0.25 * strategy.traffic.total_dense(way)  # the agreement and Flower's names come on top
        assert strategy.traffic.total(way) < 0.2 * strategy.traffic.total_dense(way)


def errors_in(caplog: pytest.LogCaptureFixture) -> str:
    return " ".join(record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)


def test_refused_strategies() -> None:
    with pytest.raises(ConfigError, match="FedXgbBagging is refused: it sends trees"):
        Lean(FedXgbBagging())
    with pytest.raises(ConfigError, match="ClientSideFixedClipping is refused: clients clip"):
        Lean(DifferentialPrivacyClientSideFixedClipping(FedAvg(), 1.0, 1.0, 3))
    for by_coordinate in (FedMedian(), Bulyan()):
        name = type(by_coordinate).__name__
        with pytest.raises(ConfigError, match=rf"{name} compares single coordinates.*ef21"):
            Compressed(by_coordinate)
        Compressed(by_coordinate, uplink={"name": "ef21", "codec": {"name": "top_k", "ratio": 0.05}})
    with pytest.raises(ConfigError, match="older interface"):
        Lean("FedAvg")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="inside another compression"):
        Lean(Lean(FedAvg()))


def test_around_differential_privacy_at_the_server(tmp_path: Path) -> None:
    private = DifferentialPrivacyServerSideFixedClipping(FedAvg(**FLOWER), 0.001, 10.0, NODES)
    result, _ = run(Lean(private, budget=0.3), tmp_path)
    assert len(result.train_metrics_clientapp) == 4


def test_inside_another_strategy_it_is_refused(tmp_path: Path) -> None:
    private = DifferentialPrivacyServerSideFixedClipping(Lean(FedAvg(**FLOWER)), 0.001, 10.0, NODES)
    with pytest.raises(RunError, match="put Lean outermost"):
        run(private, tmp_path)


@pytest.mark.parametrize(("budget", "rounds"), [(0.0005, 4), (0.01, 1)])
def test_a_budget_that_cannot_be_kept(budget: float, rounds: int, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"budget must be at least 0\.\d+ in this run .* first contacts alone"):
        run(Lean(FedAvg(**FLOWER), budget=budget), tmp_path, rounds=rounds)


def test_a_budget_that_cannot_train(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("flwr").propagate = True
    run(Lean(FedAvg(**FLOWER), budget=0.1), tmp_path, rounds=2)
    assert errors_in(caplog).count("use at least") == 1
    assert "or a budget of at least" in errors_in(caplog)
