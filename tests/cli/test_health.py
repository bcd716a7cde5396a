"""`fedreuse health`: a node that can take part, and every reason why one cannot."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from fedreuse.cli import health
from tests.cli.conftest import Invoke


@pytest.fixture
def superlink() -> object:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_a_node_that_answered(invoke: Invoke, tmp_path: Path, superlink: str) -> None:
    assert "none yet" in invoke("health", superlink, "--store", tmp_path / "new").stdout
    state = tmp_path / "0a" / "client-0000000.safetensors"
    state.parent.mkdir()
    state.write_bytes(b"state")
    told = json.loads(invoke("health", superlink, "--store", tmp_path, "--json").stdout)
    assert (told["problem"], told["num_runs"], told["superlink"]) == ("", 1, "")
    assert told["seconds_since_answer"] >= 0
    assert "accepts connections" in invoke("health", superlink, "--store", tmp_path).stdout


def test_metrics(invoke: Invoke, tmp_path: Path, superlink: str) -> None:
    text = invoke("health", superlink, "--store", tmp_path, "--metrics").stdout
    assert "\nfedreuse_node_superlink_reachable 1\n" in text
    assert "\nfedreuse_node_store_writable 1\n" in text


def test_metrics_are_served(tmp_path: Path, superlink: str) -> None:
    command = [sys.executable, "-c", "from fedreuse.cli import main; main()", "health", superlink]
    with subprocess.Popen(
        [*command, "--store", str(tmp_path), "--serve", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        try:
            for _ in range(2):
                with urllib.request.urlopen(address) as answer:
                    assert b"fedreuse_node_superlink_reachable 1" in answer.read()
        finally:
            process.terminate()


def test_problems_are_named(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, superlink: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    shown = invoke("health", f"127.0.0.1:{port}", "--store", tmp_path)
    assert shown.exit_code == 1
    assert f"127.0.0.1:{port} cannot be reached" in shown.output
    monkeypatch.setattr(health, "_LITTLE_DISK", 1 << 80)
    assert "bytes are free" in health.examine_node(superlink, tmp_path).problem
    monkeypatch.setattr(health.os, "access", lambda *_: False)
    assert "cannot be written by this user" in health.examine_node(superlink, tmp_path).problem


@pytest.mark.parametrize("address", ["server", "server:", ":8000x", "8000"])
def test_an_address_that_is_none(invoke: Invoke, address: str) -> None:
    shown = invoke("health", address)
    assert shown.exit_code == 2
    assert "HOST:PORT expected" in shown.output
