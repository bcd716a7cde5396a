"""An existing app with `Lean` on real nodes, with Flower's own programs: joins, leaves, deaths and bad input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fedreuse.deploy.flower.authority import make_authority
from fedreuse.deploy.local.federation import LocalFederation
from tests.deploy.chaos import PATIENCE_SECONDS, signal_node

pytestmark = [pytest.mark.slow, pytest.mark.deploy]
APP = Path(__file__).with_name("steps_app")


class Steps:
    """A federation of `steps_app`: unmodified SuperLink and SuperNodes, TLS, a key per node."""

    def __init__(self, folder: Path, num_nodes: int) -> None:
        self.folder = folder
        self.authority = make_authority(folder / "certificates", 3, ["127.0.0.1"])
        self.federation = LocalFederation(folder / "federation", num_nodes, self.authority)
        self.federation.claims = {node: node for node in range(3)}
        self.federation.is_resident = self.federation.is_guarded = False

    def home(self, node: int) -> Path:
        """Folder of a node, in which files make it fail."""
        home = self.federation.folder / f"node-{node}"
        home.mkdir(parents=True, exist_ok=True)
        return home

    def launch(self, name: str = "run", **config: Any) -> Path:
        """Start the app, or start it again, and return its folder."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        self.federation.launch(APP, {"folder": str(folder), **config})
        return folder

    def wait(self, what: str, is_so: Callable[[], Any]) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert time.monotonic() < deadline, f"waited {PATIENCE_SECONDS:g} s for: {what}\n{self.log()[-5000:]}"
            self.federation.check()
            time.sleep(0.2)

    def wait_for_hold(self, node: int, number: int) -> None:
        """Wait until a node is in its training of that number, which does not end."""
        self.wait(f"node {node} in training {number}", (self.home(node) / f"holding-{number}").exists)

    def kill_in_training(self, node: int, number: int) -> None:
        """End a node without warning in the middle of its training of that number."""
        self.wait_for_hold(node, number)
        signal_node(self.federation, node, signal.SIGKILL)
        (self.home(node) / f"hold-{number}").unlink()

    def log(self) -> str:
        """Return the log of the SuperLink, which has that of the server app."""
        return (self.federation.folder / "superlink.log").read_text()

    def ids(self) -> list[str]:
        """Return the ids of connected nodes."""
        listed = json.loads(self.federation.flower("supernode", "list", "local", "--format", "json"))
        return [str(row["node-id"]) for row in listed["nodes"] if row["status"] == "online"]


@pytest.fixture
def steps(tmp_path: Path) -> Iterator[Callable[[int], Steps]]:
    made: list[Steps] = []

    def start(num_nodes: int) -> Steps:
        made.append(Steps(tmp_path, num_nodes))
        return made[0]

    yield start
    for each in made:
        each.federation.stop()
        assert list(each.federation.processes()) == []


def rounds_of(folder: Path) -> list[dict[str, Any]]:
    file = folder / "rounds.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_nodes_die_join_late_and_forget_and_the_server_app_dies(steps: Callable[[int], Steps]) -> None:
    """Every wait is for a condition; a held training keeps the round open until its fault has happened."""
    here = steps(2)  # the third joins later
    (here.home(0) / "hold-2").touch()
    (here.home(1) / "hold-4").touch()
    (here.home(2) / "hold-2").touch()
    with here.federation as federation:
        here.wait("two nodes", lambda: len(here.ids()) == 2)
        folder = here.launch(rounds=9, nodes=1)
        here.kill_in_training(0, 2)
        here.wait("the end of the round without node 0", lambda: len(rounds_of(folder)) > 2)
        federation.flower("supernode", "register", str(here.authority.node_public_key(2)), "local")
        federation.start_node(0)  # with its disk
        federation.start_node(2)  # for the first time
        here.wait_for_hold(1, 4)
        here.wait("three nodes", lambda: len(here.ids()) == 3)
        here.kill_in_training(1, 4)
        done = len(rounds_of(folder))
        here.wait("the end of the round without node 1", lambda: len(rounds_of(folder)) > done)
        shutil.rmtree(here.home(1) / "store")
        federation.start_node(1)
        here.wait("three nodes", lambda: len(here.ids()) == 3)
        here.wait_for_hold(2, 2)
        os.kill(int((folder / "server.pid").read_text()), signal.SIGKILL)
        (here.home(2) / "hold-2").unlink()
        before = rounds_of(folder)
        here.launch(rounds=9, nodes=3)
        here.wait("the end of the run", (folder / "result.json").exists)
    log, after = (folder / "log.txt").read_text(), rounds_of(folder)[len(before) :]
    done = len({row["distance"] for row in before}) - 1  # a round in which nobody replied left the model as it was
    assert f"continuing the unfinished run in {folder / 'run'} after {done} rounds" in log
    assert after[0] == {**before[-1], "round": 0}  # the same model, to the last bit
    assert done + len(after) - 1 == 9
    assert after[-1]["distance"] < 0.1 * before[0]["distance"]
    assert log.count("is sent the model again") == 1  # the node that lost its disk; the others continue
    evaluated = json.loads((folder / "result.json").read_text())["evaluated"]
    assert len(evaluated) == len(after) - 1
    assert not (folder / "run" / "run.json").exists()


def test_bad_input_is_named_with_the_way_out(steps: Callable[[int], Steps]) -> None:
    here = steps(3)
    with here.federation as federation:
        (here.home(0) / "no_mod").touch()
        (here.home(1) / "old_version").touch()
        first = here.launch("first", rounds=2)
        here.wait("the end of the first run", (first / "result.json").exists)
        for path in (here.home(0) / "no_mod", here.home(1) / "old_version"):
            path.unlink()

        (here.home(0) / "other_model").touch()
        (here.home(1) / "hold-2").touch()
        (here.home(2) / "hold-5").touch()  # the third of this run
        second = here.launch("second", rounds=4, nodes=2)
        here.kill_in_training(1, 2)
        here.wait_for_hold(2, 5)
        shutil.rmtree(here.home(1) / "store")
        shutil.copytree(here.home(2) / "store", here.home(1) / "store")
        federation.start_node(1)
        here.wait("three nodes", lambda: len(here.ids()) == 3)
        (here.home(2) / "hold-5").unlink()
        here.wait("the end of the second run", (second / "result.json").exists)

        third = here.launch("third", budget=0.0001)
        here.wait("a refused budget", lambda: "budget" in log_of(third))
    assert "is refused: " in log_of(first)
    assert "is its client app made with ClientApp(mods=[compression_mod])?" in log_of(first)
    assert "this client 0.0.1" in log_of(first)
    assert "install the same version on both" in log_of(first)
    assert rounds_of(first)[-1]["distance"] < rounds_of(first)[0]["distance"]  # by the third node alone
    assert "its folder holds the state of client " in log_of(second)
    assert "give every node one of its own" in log_of(second)
    assert "but was given float32 (500, 200); return it with the same shape and dtype" in log_of(second)
    assert "budget must be at least 0.0" in log_of(third)
    assert "raise the budget or the number of rounds" in log_of(third)
    assert rounds_of(third) == []


def log_of(folder: Path) -> str:
    path = folder / "log.txt"
    return path.read_text() if path.exists() else ""
