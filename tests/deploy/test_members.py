"""Members that cannot be forged: keys decide who plays whom, also after they were revoked or rotated during a run."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.events import RoundDone
from fedreuse.core.listener import Listener
from fedreuse.deploy.flower.authority import Authority, make_authority
from fedreuse.deploy.flower.flat_config import to_flat
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.flower.server import serve
from fedreuse.deploy.local.federation import LocalFederation
from fedreuse.deploy.local.run import run_on
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from tests.deploy.fake_grid import FIRST_NODE, FakeGrid
from tests.tiny import results, tiny

CONFIG = tiny(rounds={"count": 3, "cohort": 6, "evaluate_every": 3})
Spoil = Callable[[Any, Any], Any]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return make_authority(tmp_path / "keys", 8)


def grid_of(folder: Path, authority: Authority) -> tuple[FakeGrid, dict[str, Any]]:
    """Six nodes with keys and without numbers, of which the roster knows the clients."""
    flat = to_flat(CONFIG, Deployment(out=str(folder / "out"), roster=str(authority.roster), min_clients=5))
    grid = FakeGrid(folder, flat, range(6))
    for number, context in enumerate(grid.contexts.values()):
        context.node_config = {"store": str(folder / f"node-{number}"), "key-path": str(authority.node_key(number))}
    return grid, flat


def log_of(directory: RunDirectory) -> str:
    return (directory.path / "log.txt").read_text()


def outcomes(directory: RunDirectory, client: int) -> list[str]:
    return [event.outcome for event in directory.events() if event.client == client]


@pytest.mark.slow
def test_the_roster_decides_whom_a_node_plays(tmp_path: Path, authority: Authority) -> None:
    lines = authority.roster.read_text().splitlines()
    swapped = [lines[1].replace("1 ", "0 ", 1), lines[0].replace("0 ", "1 ", 1), *lines[2:6]]
    authority.roster.write_text("\n".join(swapped))
    grid, flat = grid_of(tmp_path, authority)
    directory = serve(grid, flat)
    assert "node 1001 is client 0\n" in log_of(directory)
    assert results(directory) == results(run(CONFIG, tmp_path / "simulated"))  # whoever plays a client, it is that one
    assert "challenge" not in log_of(directory)


@pytest.mark.slow
def test_an_impostor_with_a_key_of_its_own_is_refused(tmp_path: Path, authority: Authority) -> None:
    grid, flat = grid_of(tmp_path, authority)
    contexts = grid.contexts
    contexts[FIRST_NODE + 3].node_config |= {"partition-id": 4}  # known, and claims to be another
    contexts[FIRST_NODE + 5].node_config |= {"key-path": str(make_authority(tmp_path / "own", 1).node_key(0))}
    grid_of_five = {**flat, "deploy.min_clients": 4}
    directory = serve(grid, grid_of_five)
    assert "node 1003 is refused: it claims client 4, but its key is that of client 3" in log_of(directory)
    assert "node 1005 is refused: its key ..." in log_of(directory)
    assert outcomes(directory, 4) == ["fresh"] * 3
    assert outcomes(directory, 3) == outcomes(directory, 5) == ["lost"] * 3


def at_round(number: int, act: Callable[[], object]) -> Spoil:
    """Do something while a round goes on."""

    def spoil(request: Any, reply: Any) -> Any:
        if request.metadata.group_id == str(number):
            act()
        return reply

    return spoil


@pytest.mark.slow
def test_a_key_is_revoked_while_the_run_goes_on(tmp_path: Path, authority: Authority) -> None:
    grid, flat = grid_of(tmp_path, authority)
    kept = [line for line in authority.roster.read_text().splitlines() if not line.startswith("2 ")]
    grid.spoil = at_round(1, lambda: authority.roster.write_text("\n".join(kept)))
    directory = serve(grid, flat)
    assert outcomes(directory, 2) == ["fresh", "lost", "lost"]
    assert "node 1002 is refused: its key" in log_of(directory)


@pytest.mark.slow
def test_a_key_is_rotated_while_the_run_goes_on(tmp_path: Path, authority: Authority) -> None:
    grid, flat = grid_of(tmp_path, authority)
    fresh = authority.node_public_key(7).read_text()
    rotated = [line for line in authority.roster.read_text().splitlines()[:6] if not line.startswith("2 ")]
    new = grid.contexts.pop(FIRST_NODE + 2)

    def rotate() -> None:
        authority.roster.write_text("\n".join([*rotated, f"2 {fresh}"]))
        new.node_config["key-path"] = str(authority.node_key(7))
        grid.contexts[FIRST_NODE + 2] = new

    grid.contexts[FIRST_NODE + 2] = new
    grid.spoil = at_round(1, rotate)
    directory = serve(grid, flat)
    assert outcomes(directory, 2) == ["fresh", "lost", "lost"]  # this node stays refused until it connects anew
    grid, flat = grid_of(tmp_path, authority)
    grid.contexts[FIRST_NODE + 2].node_config["key-path"] = str(authority.node_key(7))
    again = serve(grid, {**flat, "deploy.out": str(tmp_path / "again")})
    assert outcomes(again, 2) == ["fresh"] * 3


@pytest.mark.slow
def test_a_node_without_a_key_and_without_a_number_is_refused(tmp_path: Path, authority: Authority) -> None:
    grid, flat = grid_of(tmp_path, authority)
    del grid.contexts[FIRST_NODE].node_config["key-path"]
    assert "node 1000 is refused: it proves no key" in log_of(serve(grid, flat))
    grid, flat = grid_of(tmp_path, authority)
    for number in range(1, 6):
        grid.contexts[FIRST_NODE + number].node_config["partition-id"] = number
    flat |= {"deploy.roster": "", "deploy.out": str(tmp_path / "claimed")}
    assert "it does not name its client" in log_of(serve(grid, flat))


@pytest.mark.slow
def test_what_clients_remember_is_theirs_alone(tmp_path: Path, authority: Authority) -> None:
    grid, flat = grid_of(tmp_path, authority)
    flat |= to_flat(tiny(method={"name": "fed_ef"}, rounds={"count": 1, "cohort": 6}), Deployment()) | {
        key: value for key, value in flat.items() if key.startswith("deploy.")
    }
    for context in grid.contexts.values():
        context.run_config = flat
    serve(grid, flat)
    (folder,) = (tmp_path / "node-0").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


@pytest.mark.deploy
def test_a_real_impostor_a_revoked_and_a_rotated_key(tmp_path: Path, authority: Authority) -> None:
    """Nodes 0 to 2 play; 3 is registered as client 3 and claims client 1; then node 2's key is rotated to node 4's."""
    config = tiny(task={"clients": 4}, rounds={"count": 6, "cohort": 4, "evaluate_every": 3})
    lines = authority.roster.read_text().splitlines()
    authority.roster.write_text("\n".join(lines[:4]))

    class Rotate(Listener):
        def round_done(self, event: RoundDone) -> None:
            if event.row["round"] == 1:
                authority.roster.write_text("\n".join([*lines[:2], lines[3], lines[4].replace("4 ", "2 ", 1)]))
                federation.start_node(4)

    federation = LocalFederation(tmp_path / "federation", 3, authority)
    with federation:
        for node in (3, 4):
            federation.flower("supernode", "register", str(authority.node_public_key(node)), "local")
        federation.claims = {3: 1}
        federation.start_node(3)
        directory = run_on(federation, config, Deployment(out=str(tmp_path / "out"), min_clients=3), Rotate())
    log = log_of(directory)
    assert "is refused: it claims client 1, but its key is that of client 3" in log
    assert "is refused: its key ..." in log  # the one that was rotated away
    assert outcomes(directory, 3) == ["lost"] * 6
    assert log.count("is client 1") == 1
    assert log.count("is client 2") == 2
    assert outcomes(directory, 1) == ["fresh"] * 6
    assert outcomes(directory, 2)[0] == outcomes(directory, 2)[-1] == "fresh"
    secrets = [authority.node_key(node).read_text().splitlines()[1] for node in range(5)]
    told = [file.read_text(errors="replace") for file in tmp_path.rglob("*.log")] + [log]
    assert not any(secret in text for secret in secrets for text in told)
