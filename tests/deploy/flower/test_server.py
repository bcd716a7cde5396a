"""The server app and the client app, in one process: what a simulation does, they do, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.errors import RunError
from fedreuse.deploy.flower.flat_config import to_flat
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.flower.server import STATE_FILE, serve
from fedreuse.runs.launch import run
from tests.deploy.fake_grid import FakeGrid
from tests.tiny import results, tiny

LOST = {
    "name": "listed",
    "entries": [{"round": 2, "client": 1, "fate": "lost"}, {"round": 3, "client": 0, "fate": "late"}],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts",
    [
        {"method": {"name": "fedavg"}},
        {"method": {"name": "scaffold"}},
        {"method": {"name": "fed_ef"}},
        {"method": {"name": "clag"}},
        {"method": {"name": "dg_fedreuse"}},
        {"method": {"name": "stc_updown"}},
        {
            "method": {"name": "dg_fedreuse"},
            "buffers": "as_weights",
            "uplink": {"update": {"name": "top_k", "ratio": 0.2}},
        },
    ],
    ids=lambda parts: "-".join([parts["method"]["name"], *(["topk"] if "uplink" in parts else [])]),
)
def test_the_same_bits_as_a_simulation_with_a_lost_and_a_late_reply(tmp_path: Path, parts: dict[str, Any]) -> None:
    config = tiny(faults=LOST, rounds={"count": 4, "cohort": 6, "evaluate_every": 2}, **parts)
    flat = to_flat(config, Deployment(out=str(tmp_path / "deployed")))
    directory = serve(FakeGrid(tmp_path, flat, range(6)), flat)
    run(config, tmp_path / "simulated")
    assert results(directory) == results(tmp_path / "simulated")
    assert json.loads((directory.path / STATE_FILE).read_text())["state"] == "finished"


@pytest.mark.slow
def test_a_failure_is_told_in_the_state_file(tmp_path: Path) -> None:
    flat = to_flat(tiny(), Deployment(out=str(tmp_path / "out"), wait_seconds=0.01))
    with pytest.raises(RunError, match="5 of 6 clients said hello"):
        serve(FakeGrid(tmp_path, flat, range(5)), flat)
    state = json.loads((tmp_path / "out" / STATE_FILE).read_text())
    assert (state["state"], "missing: [5]" in state["error"]) == ("failed", True)


def test_a_server_app_that_is_stopped_names_the_way_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise SystemExit(0)  # Flower's answer to a termination signal

    monkeypatch.setattr("fedreuse.deploy.flower.server.GridClients", stop)
    flat = to_flat(tiny(), Deployment(out=str(tmp_path / "out")))
    with pytest.raises(SystemExit):
        serve(FakeGrid(tmp_path, flat, range(5)), flat)
    assert "stopped (exit code 0)" in json.loads((tmp_path / "out" / STATE_FILE).read_text())["error"]


@pytest.mark.slow
def test_personal_models_are_evaluated_where_they_live(tmp_path: Path) -> None:
    config = tiny(method={"name": "ditto"}, rounds={"count": 2, "cohort": 6, "evaluate_every": 1})
    flat = to_flat(config, Deployment(out=str(tmp_path / "deployed")))
    directory = serve(FakeGrid(tmp_path, flat, range(6)), flat)
    simulated = run(config, tmp_path / "simulated")
    assert directory.metric("personal_validation_score")[1].tolist() == (
        simulated.metric("personal_validation_score")[1].tolist()
    )
    assert results(directory)["model"] == results(simulated)["model"]
    # client-local test data is dealt in simulation alone
    assert set(directory.summary["personal_test"].values()) == {None}
