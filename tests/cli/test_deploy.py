"""`fedreuse deploy`: the app folder, the authority, what is refused, and one real federation with Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Invoke
from tests.tiny import TINY


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return path


def fedreuse(*words: object) -> subprocess.CompletedProcess[str]:
    script = "from fedreuse.cli import main; main()"
    return subprocess.run([sys.executable, "-c", script, *map(str, words)], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_an_app_folder_is_written_and_the_next_step_named(tmp_path: Path, config: Path) -> None:
    done = fedreuse("deploy", config, "seed=9", "deploy.timeout_seconds=60", "--out", tmp_path / "app")
    assert done.returncode == 0, done.stderr
    assert "flwr run" in done.stdout
    project = (tmp_path / "app" / "pyproject.toml").read_text()
    assert "\nseed = 9\n" in project
    assert "\ndeploy.timeout_seconds = 60.0\n" in project


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--out", "app"], "name a configuration"),
        (["CONFIG"], "--out FOLDER"),
        (["CONFIG", "deploy.timeout=3", "--out", "app"], "timeout_seconds"),
        (["CONFIG", "--local", "2"], "task.clients=2"),
        (["CONFIG", "--local", "6", "--loss", "1%"], "--meter namespace"),
        (["CONFIG", "--local", "6", "--meter", "radio"], "relay or namespace"),
        (["CONFIG", "--local", "6", "--meter", "relay", "--delay", "slow"], "such as 50ms"),
    ],
)
def test_what_is_refused_says_the_way_out(invoke: Invoke, config: Path, words: list[str], reason: str) -> None:
    done = invoke("deploy", *(config if word == "CONFIG" else word for word in words))
    assert (done.exit_code, reason in done.stderr) == (2, True), done.stderr


@pytest.mark.slow
def test_the_authority_is_made_once(tmp_path: Path) -> None:
    done = fedreuse("deploy", "--make-authority", tmp_path / "a", "--nodes", 2)
    assert (done.returncode, (tmp_path / "a" / "node-1.key").exists()) == (0, True), done.stderr
    assert fedreuse("deploy", "--make-authority", tmp_path / "a").returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["superlink"],
        ["superlink", "--host", "0.0.0.0", "--insecure"],
        ["supernode", "server.example:8000", "0", "--insecure"],
        ["supernode", "server.example:8000", "0"],
    ],
)
def test_plain_text_is_not_slipped_into(words: list[str]) -> None:
    done = fedreuse(*words)
    assert (done.returncode, "insecure" in done.stderr) == (2, True), done.stderr


@pytest.mark.slow
def test_superlink_and_supernode_say_what_they_start(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flower's program takes the place of this process, so that the test stops there."""
    became: list[str] = []

    def become(_: str, command: list[str], __: object) -> None:
        became[:] = command
        raise SystemExit(0)

    monkeypatch.setattr(os, "execvpe", become)
    monkeypatch.setenv("PATH", os.environ["PATH"])
    shown = invoke("superlink", "--insecure", "--port", 9999, "--json")
    assert json.loads(shown.stdout) == {"address": "127.0.0.1:9999", "is_encrypted": False}
    assert "fedreuse.deploy.flower.front_door" in became
    shown = invoke("supernode", "127.0.0.1:9999", 3, "--insecure", "--store", tmp_path, "--json")
    node = {"store": str(tmp_path), "partition-id": 3}
    assert json.loads(shown.stdout) == {"superlink": "127.0.0.1:9999", "is_encrypted": False, "node": node}
    assert "fedreuse.deploy.resident.keeper" in became
    assert str(tmp_path / ".resident") in became
    invoke("supernode", "127.0.0.1:9999", 3, "--insecure", "--store", tmp_path, "--no-resident")
    assert became[0] == "flower-supernode"


def wait_for(condition: Callable[[], Any]) -> None:
    while not condition():
        time.sleep(0.1)


@pytest.mark.deploy
def test_after_ctrl_c_nothing_is_left_and_the_run_goes_on(tmp_path: Path, config: Path) -> None:
    words = ["deploy", str(config), "task.clients=2", "rounds.cohort=2", "rounds.count=2", "--local", "2"]
    out = tmp_path / "out"
    marked = {**os.environ, "FEDREUSE_TEST": str(tmp_path)}
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\nfrom fedreuse.cli import main; main()"
    )
    command = [sys.executable, "-c", script, *words, "--out", str(out)]
    first = subprocess.Popen(command, env=marked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(
        lambda: ((out / "log.txt").exists() and "round 1:" in (out / "log.txt").read_text()) or first.poll() is not None
    )
    first.send_signal(signal.SIGINT)
    _, told = first.communicate()
    assert (first.returncode, "--resume" in told) == (130, True), told
    assert left_behind(tmp_path) == []
    second = subprocess.run([*command, "--resume"], env=marked, capture_output=True, text=True, check=False)
    assert second.returncode == 0, second.stderr
    assert "test accuracy" in second.stdout
    assert (out / "COMPLETE").exists()
    assert left_behind(tmp_path) == []


def left_behind(mark: Path) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if f"FEDREUSE_TEST={mark}".encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_text())
            except OSError:
                continue
    return found
