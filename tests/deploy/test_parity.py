"""Parity: on a real local federation, with a reply that is really lost, the bits are those of a simulation.

The convolutional network with batch normalisation, three rounds: DG-FedReuse on two nodes, all methods on six. In round
2 client 1 works, remembers, and fails before its reply is sent; the simulation's fault plan says so in advance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fedreuse.config.run_config import RunConfig
from fedreuse.core.listener import Listeners
from fedreuse.deploy.flower.app_folder import PACKAGE, write_app
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.flower.parts import is_long
from fedreuse.deploy.local.federation import LocalFederation
from fedreuse.deploy.local.run import follow
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from tests.tiny import results, tiny

GATE = {"name": "proxy", "quota": 0.2, "tau_start": 1.0, "tau_floor": 1.0}
METHODS: dict[str, dict[str, Any]] = {
    "fedavg": {"method": {"name": "fedavg"}},
    "scaffold": {"method": {"name": "scaffold"}},
    "fed_ef": {"method": {"name": "fed_ef"}},
    "clag": {"method": {"name": "clag"}, "uplink": {"update": {"name": "clag", "zeta": 1.0}}},
    "lean": {"method": {"name": "lean", "budget": 0.4}},
    "lean, shared": {"method": {"name": "lean", "budget": 0.3, "server_memory": "shared"}},
    "dg_fedreuse": {"method": {"name": "dg_fedreuse", "gate": GATE}},
}
LOST = {"name": "listed", "entries": [{"round": 2, "client": 1, "fate": "lost"}]}
FAILING_CLIENT = '''"""Our client app, which fails once, after its work."""

from flwr.clientapp import ClientApp

from fedreuse.deploy.flower.client import answer, greet

app = ClientApp()
app.query()(greet)


@app.train()
def train(message, context):
    reply = answer(message, context)
    if message.metadata.group_id == "2" and context.node_config["partition-id"] == 1:
        raise ConnectionError("the reply is lost")
    return reply
'''


@pytest.mark.slow
def test_dg_fedreuse_has_the_bits_of_a_simulation_and_nothing_is_left_running(tmp_path: Path) -> None:
    check_parity(["dg_fedreuse"], 2, tmp_path)


@pytest.mark.deploy
def test_seven_methods_have_the_bits_of_a_simulation(tmp_path: Path) -> None:
    check_parity(list(METHODS), 6, tmp_path)


@pytest.mark.slow
@pytest.mark.deploy
def test_messages_in_parts_have_the_bits_of_a_simulation(tmp_path: Path) -> None:
    """Requests and replies of 18 MB, more than one part of 16 MiB."""
    config = tiny(
        task={"clients": 2}, network={"name": "mlp", "hidden": [2100, 2100]}, rounds={"count": 2, "cohort": 2}
    )
    with LocalFederation(tmp_path / "federation", 2) as federation:
        federation.launch(write_app(config, Deployment(out=str(tmp_path / "run")), tmp_path / "app"))
        directory = RunDirectory(tmp_path / "run")
        assert [row["round"] for row in follow(federation, directory, config, Listeners([]))] == [1, 2]
    assert {row.direction for row in directory.ledger() if is_long(row.total_bytes)} == {"down", "up"}
    assert results(directory) == results(run(config, tmp_path / "simulated"))


def check_parity(names: Sequence[str], num_nodes: int, folder: Path) -> None:
    """All of them on one federation, one after another."""
    parts = {"task": {"clients": num_nodes}, "rounds": {"count": 3, "cohort": num_nodes}}
    with LocalFederation(folder / "federation", num_nodes) as federation:
        deployed = {name: deploy(federation, tiny(**parts, **METHODS[name]), folder / name) for name in names}
    assert list(federation.processes()) == []
    for name in names:
        simulated = run(tiny(**parts, faults=LOST, **METHODS[name]), folder / f"{name}-simulated")
        check_same(deployed[name], simulated)
        check_was_worth_it(name, deployed[name])


def deploy(federation: LocalFederation, config: RunConfig, folder: Path) -> RunDirectory:
    app = write_app(config, Deployment(out=str(folder / "run")), folder / "app")
    (app / PACKAGE / "client.py").write_text(FAILING_CLIENT)
    federation.launch(app)
    directory = RunDirectory(folder / "run")
    assert [row["round"] for row in follow(federation, directory, config, Listeners([]))] == [1, 2, 3]
    return directory


def check_same(deployed: RunDirectory, simulated: RunDirectory) -> None:
    """Weights, every row of the ledger but for seconds, events, scores."""
    ours, theirs = results(deployed), results(simulated)
    for key in ("model", "ledger", "events", "metrics", "digests"):
        assert ours[key] == theirs[key], key
    assert "the reply is lost" in (deployed.path / "log.txt").read_text()


def check_was_worth_it(name: str, directory: RunDirectory) -> None:
    """The run held what parity is about: a lost reply, batch statistics, reuse or silence where the method has it."""
    assert [(event.round_number, event.client) for event in directory.events() if event.outcome == "lost"] == [(2, 1)]
    assert any(tensor.endswith("running_var") for tensor in directory.model())
    if name == "dg_fedreuse":
        assert any(event.outcome == "reused" for event in directory.events())
    if name.startswith("lean"):  # nobody was sent a model in round 1, and nobody had to be resynced
        assert not any(row.group_bytes("model") for row in directory.ledger() if row.round_number == 1)
        assert {row.kind for row in directory.ledger()} == {"train", "update"}
    if name == "clag":
        assert any(is_silent for is_silent in silent_updates(directory))


def silent_updates(directory: RunDirectory) -> Iterator[bool]:
    for row in directory.ledger():
        if row.direction == "up" and row.kind == "update":
            yield not any(group.startswith("update:") for group in row.fields)
