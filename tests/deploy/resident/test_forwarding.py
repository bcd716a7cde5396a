"""The process of a message: it imports no torch, forwards what it can, and answers itself what it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.deploy.resident.forwarding import ResidentApp, loaded
from fedreuse.deploy.resident.line import TOKEN_FILE, VARIABLE, greeted, listening
from tests.deploy.resident.apps import TARGET
from tests.deploy.resident.conftest import Ask


@pytest.mark.slow
def test_the_forwarding_process_imports_flower_frames_and_sockets_alone() -> None:
    script = """
import sys
import fedreuse.deploy.flower.client
print(*(name for name in sys.modules if name.partition(".")[0] in ("fedreuse", "torch")))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert "torch" not in imported
    packages = {name for name in imported if name.count(".") == 1}
    assert packages == {"fedreuse.core", "fedreuse.deploy"}
    assert {name for name in imported if name.startswith("fedreuse.deploy.flower.")} == {
        "fedreuse.deploy.flower.client", "fedreuse.deploy.flower.frame", "fedreuse.deploy.flower.message",
        "fedreuse.deploy.flower.private",
    }  # fmt: skip


def test_without_a_worker_the_app_answers_here(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert ask()["times"] == 1
    assert ask()["times"] == 2


def test_a_worker_of_another_version_is_left_alone(tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / TOKEN_FILE).write_bytes(bytes(32))
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    server = listening(tmp_path)
    heard: list[bytes] = []

    def serve() -> None:
        with server, server.accept()[0] as connection:
            greeted(connection, tmp_path)
            heard.append(connection.recv(1))

    thread = Thread(target=serve)
    thread.start()
    monkeypatch.setattr("fedreuse.deploy.resident.forwarding.fedreuse", type("Newer", (), {"__version__": "9.9"}))
    assert ask()["times"] == 1
    thread.join()
    assert heard == [b""]  # it was told nothing


def test_a_target_must_be_a_client_app() -> None:
    assert loaded(TARGET) is loaded(TARGET)
    with pytest.raises(ConfigError, match=r"is not a ClientApp; write package\.module:name"):
        loaded("tests.deploy.resident.apps:misbehave")
    assert ResidentApp(TARGET).target == TARGET


def test_a_target_that_is_nowhere_is_told(tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(ConfigError, match="'no_such_app:app' cannot be imported"):
        ask(target="no_such_app:app")
