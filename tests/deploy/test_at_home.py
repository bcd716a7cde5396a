"""Data that stay at home: every node has its own folder alone, and the bits are those of a simulation that has all."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.config.run_config import RunConfig
from fedreuse.core.errors import ConfigError
from fedreuse.deploy.flower.authority import make_authority
from fedreuse.deploy.flower.flat_config import to_flat
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.flower.server import serve
from fedreuse.deploy.local.federation import LocalFederation
from fedreuse.deploy.local.run import run_on
from fedreuse.learning.files.writing import at_home_task, write_clients
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from tests.deploy.fake_grid import FIRST_NODE, FakeGrid
from tests.tiny import plain, results, tiny

DIGITS: dict[str, Any] = {"name": "digits", "clients": 6, "limit": 300}


def split(folder: Path, **parts: Any) -> tuple[RunConfig, RunConfig, dict[int, Path]]:
    """A simulation, the same task with data at home, and a folder for every node with nothing else below it."""
    simulation = tiny(task=DIGITS, **{"bounds": "median", **parts})  # as with data at home
    written = write_clients(simulation.task, simulation.seed, folder / "all")
    home = tiny(**{**plain(**parts), "task": at_home_task(written, simulation.task.dataset.load(None))})
    folders = {client: folder / f"home-{client}" for client in range(6)}
    for client, place in folders.items():
        shutil.move(folder / f"all/clients/{client}", place)
    return simulation, home, folders


def deployed(folder: Path, home: RunConfig, folders: dict[int, Path], **options: Any) -> RunDirectory:
    """A run whose nodes live in this process."""
    flat = to_flat(home, Deployment(out=str(folder / "out"), **options))
    grid = FakeGrid(folder, flat, range(6))
    for client, place in folders.items():
        grid.contexts[FIRST_NODE + client].node_config["data-path"] = str(place)
    return serve(grid, flat)


def check_same(directory: RunDirectory, simulated: RunDirectory) -> None:
    """Model, training traffic, events and scores; evaluation crosses here, and does not in a simulation."""
    one, other = results(directory), results(simulated)
    assert one["model"] == other["model"]
    assert [row for row in one["ledger"] if row["purpose"] == "training"] == other["ledger"]
    assert one["events"] == other["events"]
    for name in ("validation_score", "fresh", "lost"):
        assert [row[name] for row in one["metrics"]] == [row[name] for row in other["metrics"]]
    assert directory.summary["test_score"] == simulated.summary["test_score"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fedavg", "dg_fedreuse"])
def test_the_bits_of_a_simulation_with_nobody_having_all_data(tmp_path: Path, method: str) -> None:
    parts = {"method": {"name": method}, "rounds": {"count": 3, "cohort": 6, "evaluate_every": 1}}
    simulation, home, folders = split(tmp_path, **parts)
    directory = deployed(tmp_path, home, folders)
    check_same(directory, run(simulation, tmp_path / "simulated"))
    row = directory.metrics()[-1]
    assert 0 <= row["client_validation_worst_decile"] <= row["client_validation_mean"] <= 1
    log = (directory.path / "log.txt").read_text()
    assert "round 3: validation by client: 0 0." in log
    assert "by class" not in log  # nobody agreed to tell


@pytest.mark.slow
def test_nodes_that_do_not_fit_are_refused_with_a_line_and_the_run_goes_on(tmp_path: Path) -> None:
    _, home, folders = split(tmp_path, rounds={"count": 2, "cohort": 6})
    with np.load(folders[1] / "train.npz") as known:
        inputs, label = known["inputs"], known["label"]
    np.savez(folders[1] / "train.npz", inputs=inputs[:, :, :5], label=label)
    np.savez(folders[2] / "train.npz", inputs=inputs, label=label + 5)
    del folders[3]
    (folders[4] / "train.npz").unlink()
    directory = deployed(tmp_path, home, folders, min_clients=2)
    log = (directory.path / "log.txt").read_text()
    for words in (
        "node 1001 is refused: it reports: ", "not the size of task.shape", "none of the 10 classes",
        "start it with `fedreuse supernode --data FOLDER`", "nothing here that can be read",
    ):  # fmt: skip
        assert words in log
    events = {(event.client, event.outcome) for event in directory.events()}
    assert events == {(0, "fresh"), (5, "fresh"), (1, "lost"), (2, "lost"), (3, "lost"), (4, "lost")}


@pytest.mark.slow
def test_counts_are_those_of_the_beginning_and_bounded(tmp_path: Path) -> None:
    _, home, folders = split(tmp_path, rounds={"count": 2, "cohort": 6}, max_examples=20)
    flat = to_flat(home, Deployment(out=str(tmp_path / "out"), min_clients=5, wait_seconds=0.01))
    grid = FakeGrid(tmp_path, flat, range(6))
    for client, place in folders.items():
        grid.contexts[FIRST_NODE + client].node_config |= {"data-path": str(place), "tell-classes": True}
    grid.away = {FIRST_NODE + 5}

    def come(request: Any, reply: Any) -> Any:
        grid.away = grid.away if request.metadata.message_type == "query" else set()
        return reply

    grid.spoil = come  # after the census: client 5 comes too late to have a weight
    log = (serve(grid, flat).path / "log.txt").read_text()
    assert ", by class [" in log
    assert "node 1005 is refused: as client 5: its examples is" in log
    assert "but here it is 0; " in log


@pytest.mark.slow
def test_own_test_splits_are_looked_at_once(tmp_path: Path) -> None:
    _, home, folders = split(tmp_path, rounds={"count": 1, "cohort": 6})
    plain_home = home.to_plain()
    plain_home["task"] |= {"test": None, "duplicates": "keep"}
    for client in (0, 1):
        shutil.copy(folders[client] / "train.npz", folders[client] / "test.npz")
    directory = deployed(tmp_path, tiny(**plain_home), folders)
    spread = directory.summary["clients_test"]
    assert (spread["clients"], directory.summary["test_examples"]) == (2, spread["examples"])
    assert directory.summary["test_score"] == spread["score"]
    (record,) = (tmp_path / "node-0").glob("*/test-received.json")
    assert '"round 1"' in record.read_text()


@pytest.mark.slow
def test_personal_models_are_tested_where_they_live(tmp_path: Path) -> None:
    _, home, folders = split(tmp_path, method={"name": "ditto"}, rounds={"count": 1, "cohort": 6})
    plain_home = home.to_plain()
    plain_home["task"] |= {"test": None, "duplicates": "keep"}
    for place in folders.values():
        shutil.copy(place / "train.npz", place / "test.npz")
    personal = deployed(tmp_path, tiny(**plain_home), folders).summary["personal_test"]
    assert {name: spread["clients"] for name, spread in personal.items()} == {"own": 6, "global": 6, "fine_tuned": 6}


def test_a_simulation_cannot_have_data_at_home(tmp_path: Path) -> None:
    home = tiny(task={"name": "at_home", "shape": [1, 8, 8], "classes": 10, "clients": 6})
    with pytest.raises(ConfigError, match="at_home is for deployments"):
        run(home, tmp_path / "run")
    with pytest.raises(ConfigError, match="need examples at the server"):
        run(tiny(**{**home.to_plain(), "test": "sealed"}), tmp_path / "run")


@pytest.mark.deploy
def test_a_real_federation_with_tls_in_which_each_node_has_its_own_folder(tmp_path: Path) -> None:
    simulation, home, folders = split(tmp_path, rounds={"count": 2, "cohort": 6})
    authority = make_authority(tmp_path / "authority", 6)
    federation = LocalFederation(tmp_path / "federation", 6, authority)
    federation.data = folders
    with federation:
        directory = run_on(federation, home, Deployment(out=str(tmp_path / "out")))
    check_same(directory, run(simulation, tmp_path / "simulated"))


@pytest.mark.deploy
def test_real_nodes_that_do_not_fit_are_refused_with_a_line_and_the_run_goes_on(tmp_path: Path) -> None:
    """Of six, one has another shape, one labels beyond the classes, one no data, and the key of one has expired."""
    _, home, folders = split(tmp_path, rounds={"count": 1, "cohort": 6})
    with np.load(folders[1] / "train.npz") as known:
        inputs, label = known["inputs"], known["label"]
    np.savez(folders[1] / "train.npz", inputs=inputs[:, :, :5], label=label)
    np.savez(folders[2] / "train.npz", inputs=inputs, label=label + 5)
    del folders[3]
    authority = make_authority(tmp_path / "authority", 6)
    lines = authority.roster.read_text().splitlines()
    authority.roster.write_text("\n".join([*lines[:4], f"{lines[4]} expires=2020-01-31", lines[5]]))
    federation = LocalFederation(tmp_path / "federation", 6, authority)
    federation.data = folders
    with federation:
        directory = run_on(federation, home, Deployment(out=str(tmp_path / "out"), min_clients=2))
    log = (directory.path / "log.txt").read_text()
    for words in ("not the size of task.shape", "none of the 10 classes", "supernode --data FOLDER", "expired on 2020"):
        assert words in log
    events = {(event.client, event.outcome) for event in directory.events()}
    assert events == {(0, "fresh"), (5, "fresh"), (1, "lost"), (2, "lost"), (3, "lost"), (4, "lost")}


@pytest.mark.slow
def test_a_budget_contains_the_evaluations_of_the_nodes(tmp_path: Path) -> None:
    """Six nodes, four rounds, evaluated after rounds 1 and 4, and tested: 18 dense models beside 24 visits."""
    budget = 0.5
    parts = {"method": {"name": "lean", "budget": budget}, "rounds": {"count": 4, "cohort": 6, "evaluate_every": 4}}
    _, home, folders = split(tmp_path, **parts)
    home = tiny(**{**home.to_plain(), "task": {**home.to_plain()["task"], "metrics": ["macro_f1"]}})
    directory = deployed(tmp_path, home, folders)
    traffic = directory.traffic()["with_evaluation"]
    assert 0.8 * budget < 1 - traffic.saving() <= budget
    assert 1 - directory.traffic()["messages"].saving() < 0.45
    with pytest.raises(ConfigError, match=r"raise rounds\.evaluate_every"):
        deployed(tmp_path / "again", replace(home, rounds=replace(home.rounds, evaluate_every=1)), folders)
