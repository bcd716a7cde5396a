"""Groups of clients: formed from the whole exchange, and the same bits whatever runs them and whenever it dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.population import Population
from fedreuse.engine.executors.group import groups_of
from fedreuse.runs.launch import run
from fedreuse.testing.quadratic import QuadraticFederation
from tests.federation import build
from tests.tiny import results, tiny

METHODS: dict[str, dict[str, Any]] = {
    "fedavg": {},
    "scaffold": {"method": {"name": "scaffold"}},
    "dg_fedreuse": {"method": {"name": "dg_fedreuse"}, "uplink": {"update": {"name": "top_k", "ratio": 0.3}}},
    "lean": {"method": {"name": "lean", "budget": 0.5}},
}


def config(executor: str, method: str = "fedavg", together: object = 2, **parts: Any) -> Any:
    network = {"name": "mlp", "hidden": [6]}
    rounds = {"count": 3, "cohort": 5, "evaluate_every": 3}
    local = {"together": together, "epochs": 2}
    return tiny(f"executor={{{executor}}}", network=network, rounds=rounds, local=local, **METHODS[method], **parts)


def test_clients_with_similar_numbers_of_examples_are_together() -> None:
    federation = QuadraticFederation.draw(5)

    class Pairs:
        size = 2

    fields: dict[str, Any] = {"population": Population(federation.steps * 0 + [9, 1, 5, 1, 7])}
    alone = federation.site(build("fedavg"), **fields)
    assert groups_of([0, 1, 2, 3, 4], alone) == [[0], [1], [2], [3], [4]]
    assert groups_of([4, 3, 2, 1, 0], federation.site(build("fedavg"), together=Pairs(), **fields)) == [
        [1, 3],
        [2, 4],
        [0],
    ]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_strict_messages_and_faults(method: str, tmp_path: Path) -> None:
    faults = {"name": "random", "lost": 0.2, "late": 0.1}
    run(config("name: serial", method, faults=faults), tmp_path / "fast")
    run(config("name: serial, mode: strict", method, faults=faults), tmp_path / "strict")
    assert results(tmp_path / "fast") == results(tmp_path / "strict")


@pytest.mark.slow
def test_workers_have_the_bits_of_the_serial_executor(tmp_path: Path) -> None:
    run(config("name: serial", "scaffold"), tmp_path / "serial")
    run(config("name: pool, workers: 2", "scaffold"), tmp_path / "pool")
    assert results(tmp_path / "serial") == results(tmp_path / "pool")


@pytest.mark.slow
def test_a_network_that_cannot_trains_one_by_one_and_says_so(tmp_path: Path) -> None:
    batch_norm = {"network": {"name": "cnn", "width": 2, "hidden": 4}}
    found = run(tiny(local={"together": 3}, **batch_norm), tmp_path / "together")
    alone = run(tiny(**batch_norm), tmp_path / "alone")
    assert found.summary["model_digest"] == alone.summary["model_digest"]
    assert found.summary["run_id"] != alone.summary["run_id"]  # the setting is part of a run's identity
    assert (
        "train one by one, because BatchNorm2d (features.1) has buffers" in (tmp_path / "together/log.txt").read_text()
    )


@pytest.mark.slow
def test_together_is_close_to_alone(tmp_path: Path) -> None:
    one, other = (run(config("name: serial", together=size), tmp_path / str(size)) for size in (1, 5))
    assert one.summary["model_digest"] != other.summary["model_digest"]
    assert abs(one.summary["test_loss"] - other.summary["test_loss"]) < 1e-4
    assert one.summary["communication"] == other.summary["communication"]
