"""`fedreuse deploy --local N`: options of local nodes, and a real federation with Ctrl-C."""

from __future__ import annotations

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

from fedreuse.cli.local_federation import LocalNodes, metering_of
from fedreuse.core.errors import ConfigError
from tests.tiny import TINY


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return path


def test_line_conditions_need_a_meter() -> None:
    assert metering_of(None, (None, None, None), both_ways=False) is None
    with pytest.raises(ConfigError, match="--meter namespace"):
        metering_of(None, ("10mbit", None, None), both_ways=False)
    one_way = metering_of("relay", (None, "50ms", None), both_ways=False)
    assert one_way is not None
    assert one_way.up != one_way.down
    both = metering_of("namespace", (None, "50ms", None), both_ways=True)
    assert both is not None
    assert both.up == both.down == one_way.up


def test_every_node_has_a_folder_of_data(tmp_path: Path) -> None:
    for client in range(2):
        (tmp_path / "clients" / str(client)).mkdir(parents=True)
    form = LocalNodes(2, data=tmp_path).form(tmp_path / "run")
    assert sorted(form.data) == [0, 1]
    assert form.authority is None
    with pytest.raises(ConfigError, match=r"clients/0 to clients/2.*found \[0, 1\]"):
        LocalNodes(3, data=tmp_path).form(tmp_path / "run")


def test_a_resumed_run_keeps_its_keys(tmp_path: Path) -> None:
    nodes = LocalNodes(1, tls=True)
    first = nodes.form(tmp_path).authority
    assert first is not None
    key = first.node_key(0).read_bytes()
    again = nodes.form(tmp_path).authority
    assert again is not None
    assert again.node_key(0).read_bytes() == key


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
