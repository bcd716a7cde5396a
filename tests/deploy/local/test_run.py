"""A configuration on a federation of this machine: what is refused before anything starts, and how it is watched."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from fedreuse.core.errors import ConfigError, RunDirectoryError, RunError
from fedreuse.core.events import Started
from fedreuse.core.listener import Listener, Listeners
from fedreuse.deploy.flower.authority import make_authority
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.flower.server import STATE_FILE
from fedreuse.deploy.local import run as module
from fedreuse.deploy.local.federation import LocalFederation
from fedreuse.deploy.local.run import check_nodes, follow, run_local
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory
from tests.tiny import tiny


def test_as_many_nodes_as_clients() -> None:
    check_nodes(tiny(), 6)
    with pytest.raises(ConfigError, match=r"task\.clients=3"):
        check_nodes(tiny(), 3)


@pytest.mark.slow
def test_a_directory_that_is_not_free_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LocalFederation", None)
    run(tiny(), tmp_path / "done")
    with pytest.raises(RunDirectoryError, match="complete run"):
        run_local(tiny(), Deployment(out=str(tmp_path / "done")))
    options = Deployment(out=str(tmp_path / "done"), resume=True)
    assert run_local(tiny(), options).is_complete
    with pytest.raises(RunDirectoryError, match="another configuration"):
        run_local(tiny("seed=8"), options)


class Watcher(Listener):
    def __init__(self) -> None:
        self.told: list[Any] = []

    def started(self, event: Started) -> None:
        self.told.append(("started", event.first_round))


def state(place: Path, **told: Any) -> None:
    (place / STATE_FILE).write_text(json.dumps({"process": os.getpid(), "error": "", **told}))


@pytest.mark.slow
def test_rounds_are_told_once_each_and_only_after_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the server app says nothing, then runs, with two rounds there already, then two more come
    directory = run(tiny(), tmp_path / "out")
    rows = directory.metrics()
    states = [{}, {}, *[{"state": "running", "process": os.getpid()}] * 3, {"state": "finished"}]
    seen = [rows[:2], rows[:2], rows[:3], rows]
    monkeypatch.setattr(module, "_POLL_SECONDS", 0)
    monkeypatch.setattr(module, "_state", lambda place: states.pop(0))
    monkeypatch.setattr(module, "_rows", lambda directory: seen.pop(0))
    watcher = Watcher()
    for row in follow(LocalFederation(tmp_path, 1), directory, tiny(), Listeners([watcher])):
        watcher.told.append(row["round"])
    assert watcher.told == [("started", 3), 3, 4]


def test_a_failure_is_raised_with_its_reason(tmp_path: Path) -> None:
    state(tmp_path, state="failed", error="the disk is full")
    with pytest.raises(RunError, match="the disk is full"):
        list(follow(LocalFederation(tmp_path, 1), RunDirectory(tmp_path), tiny(), Listeners([])))


def test_a_server_app_that_died_is_noticed(tmp_path: Path) -> None:
    state(tmp_path, state="running", process=2**22 + 1)
    with pytest.raises(RunError, match="died; the rounds so far are safe, continue with resume=True"):
        list(follow(LocalFederation(tmp_path, 1), RunDirectory(tmp_path), tiny(), Listeners([])))


@pytest.mark.slow
def test_a_server_app_that_never_began_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0)
    federation, answers = LocalFederation(tmp_path, 1), [False, True]
    monkeypatch.setattr(federation, "has_ended", lambda: answers.pop(0))
    with pytest.raises(RunError, match="ended before it started"):
        list(follow(federation, RunDirectory(tmp_path / "out"), tiny(), Listeners([])))
    assert answers == []


class _Idle:
    """A federation without processes."""

    def __init__(self, *_: object) -> None:
        self.data: object = {}
        self.is_resident = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("fails", [False, True])
def test_keys_that_were_made_for_the_run_do_not_outlive_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    monkeypatch.setattr(module, "LocalFederation", _Idle)
    own = make_authority(tmp_path / "run" / "federation" / "authority", 2)
    given = make_authority(tmp_path / "given", 2)
    for authority in (own, given):
        try:
            with module.local_federation(tmp_path / "run" / "federation", 2, module.Form(authority)):
                assert authority.node_key(1).exists()
                if fails:
                    raise RunError("the server app died")
        except RunError:
            assert fails
    assert not list((tmp_path / "run").rglob("*.key"))
    assert given.node_key(0).exists()
