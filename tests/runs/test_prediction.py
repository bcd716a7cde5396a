"""The prediction: the bytes that a run then sends, exactly where they do not depend on numbers, and its memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.config.run_config import RunConfig, load
from fedreuse.runs.launch import run
from fedreuse.runs.prediction import Prediction, predict
from tests.tiny import tiny

DIGITS = {
    "task": {"name": "digits", "clients": 20, "partition": "iid"},
    "network": {"name": "mlp", "hidden": [256, 256]},
    "local": {"epochs": 1, "batch": 32},
    "rounds": {"count": 10, "cohort": 5, "evaluate_every": 10},
    "executor": {"name": "serial"},
    "seed": 1,
    "test": "sealed",
}


@pytest.mark.slow
@pytest.mark.parametrize("uplink", [None, {"name": "top_k", "ratio": 0.1}, {"name": "qsgd", "bits": 4}])
def test_sizes_that_do_not_depend_on_numbers_are_exact(uplink: object, tmp_path: Path) -> None:
    config = tiny(uplink={"update": uplink})
    found, done = predict(config), run(config, tmp_path / "run").summary
    told = done["communication"]["messages"]
    assert (found.down_bytes, found.up_bytes) == (told["down_bytes"], told["up_bytes"])
    assert (found.dense_down_bytes, found.dense_up_bytes) == (told["dense_down_bytes"], told["dense_up_bytes"])
    assert found.server_memory_bytes == done["memory_bytes"]["server.all"]
    assert found.rounds * config.rounds.cohort == found.visits


@pytest.mark.slow
def test_memories_grow_with_the_clients_that_were_met(tmp_path: Path) -> None:
    link = {"name": "delta", "codec": {"name": "top_k", "ratio": 0.1}}
    config = tiny(method="mifa", downlink={"model": link}, uplink={"update": {"name": "error_feedback"}})
    found, done = predict(config), run(config, tmp_path / "run").summary["memory_bytes"]
    met = 6
    assert found.server_memory_bytes == done["server.all"]
    assert found.client_memory_bytes * met == done["clients.all"]


def _reusing(gate: str) -> RunConfig:
    return load({**DIGITS, "method": {"name": "dg_fedreuse", "gate": gate}, "uplink": {"update": {"name": "top_k"}}})


@pytest.mark.slow
@pytest.mark.parametrize("gate", ["age_only", "random"])
def test_reuse_that_follows_from_the_schedule_is_exact(gate: str, tmp_path: Path) -> None:
    found, done = predict(_reusing(gate)), run(_reusing(gate), tmp_path / "run").summary
    told = done["communication"]["messages"]
    assert found.idle is None
    assert (found.down_bytes, found.up_bytes) == (told["down_bytes"], told["up_bytes"])
    assert found.server_memory_bytes == done["memory_bytes"]["server.all"]


@pytest.mark.slow
def test_reuse_by_scores_is_predicted_as_a_range(tmp_path: Path) -> None:
    found, done = predict(_reusing("proxy")), run(_reusing("proxy"), tmp_path / "run").summary
    told = done["communication"]["messages"]
    assert found.idle is not None
    assert found.idle.up_bytes < told["up_bytes"] < found.up_bytes
    assert found.idle.reply_bytes < found.reply_bytes
    assert found.idle.server_memory_bytes <= done["memory_bytes"]["server.all"] <= found.server_memory_bytes
    assert found.to_plain()["idle"]["share"] == found.idle.share < found.share


@pytest.mark.slow
@pytest.mark.parametrize("budget", [0.02, 0.1])
def test_a_budget_is_predicted_within_a_tenth(budget: float, tmp_path: Path) -> None:
    config = load({**DIGITS, "method": {"name": "lean", "budget": budget}})
    found, told = predict(config), run(config, tmp_path / "run").summary["communication"]["messages"]
    for predicted, measured in ((found.down_bytes, told["down_bytes"]), (found.up_bytes, told["up_bytes"])):
        assert abs(predicted - measured) <= 0.1 * measured
    assert found.share <= budget
    on_disk = sum(file.stat().st_size for file in (tmp_path / "run").rglob("*") if file.is_file())
    assert abs(found.disk_bytes - on_disk) <= 0.25 * on_disk


def test_time_on_a_line_by_hand() -> None:
    # 2 rounds of 3 clients, 600 bytes each and both ways: a round waits 8 * 100 bits at 400 bit/s, 2 s
    found = Prediction(2, 3, 6, 60, 40, 360, 240, 3600, 2400, 0, 0, 1.0, 0)
    assert found.line_seconds(400) == 4.0
    assert found.share == 0.1
    assert found.to_plain()["share"] == 0.1


@pytest.mark.slow
def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    predict(tiny())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", [{"name": "fedbuff", "buffer": 2}, {"name": "fedasync"}])
def test_asynchronous_time_follows_the_order_of_arrivals(method: dict[str, object], tmp_path: Path) -> None:
    lines = {"name": "profile", "up": {"low": 1e4, "high": 2e5}, "down": "1mbit", "compute": "1mflops"}
    config = tiny(devices=lines, method=method, rounds={"count": 8, "cohort": 4})
    found, directory = predict(config), run(config, tmp_path / "run")
    assert found.simulated_seconds == pytest.approx(directory.summary["simulated_seconds"], rel=0.02)  # dropped batches
    assert found.down_bytes == directory.summary["communication"]["messages"]["down_bytes"]


@pytest.mark.parametrize("rounds", [{}, {"cohort": 5, "wait_for": 3}, {"cohort": 6, "deadline": 3.0}])
def test_simulated_time_is_exact_where_sizes_are(rounds: dict[str, float], tmp_path: Path) -> None:
    lines = {"name": "profile", "up": {"low": 1e4, "high": 2e5}, "down": "1mbit", "compute": "1mflops"}
    config = tiny(devices=lines, rounds=rounds)
    found, directory = predict(config), run(config, tmp_path / "run")
    assert found.simulated_seconds == pytest.approx(directory.summary["simulated_seconds"], rel=1e-6)
    late = {row.client for row in directory.ledger() if row.status == "late"}
    assert set(found.too_slow) == (late if "deadline" in rounds else set())
    assert all(seconds > 3.0 for seconds in found.too_slow.values())
