"""`fedreuse authority`, `superlink` and `supernode`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke


def test_the_authority_is_made_once(invoke: Invoke, tmp_path: Path) -> None:
    done = invoke("authority", tmp_path / "a", "--nodes", 2)
    assert (done.exit_code, (tmp_path / "a" / "node-1.key").exists()) == (0, True), done.stderr
    assert "fedreuse superlink --authority" in done.stdout
    assert invoke("authority", tmp_path / "a").exit_code == 2


def test_the_authority_as_json(invoke: Invoke, tmp_path: Path) -> None:
    shown = json.loads(invoke("authority", tmp_path / "a", "--nodes", 1, "--host", "server.example", "--json").stdout)
    roster = str(tmp_path / "a" / "roster.txt")
    assert shown == {"folder": str(tmp_path / "a"), "nodes": 1, "hosts": ["server.example"], "roster": roster}


@pytest.mark.parametrize(
    "words",
    [
        ["superlink"],
        ["superlink", "--host", "0.0.0.0", "--insecure"],
        ["supernode", "server.example:8000", "0", "--insecure"],
        ["supernode", "server.example:8000", "0"],
    ],
)
def test_plain_text_must_be_asked_for(invoke: Invoke, words: list[str]) -> None:
    done = invoke(*words)
    assert (done.exit_code, "insecure" in done.stderr) == (2, True), done.stderr


def test_superlink_and_supernode_start_flowers_programs(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process would be replaced by Flower's program; the test stops there."""
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
    assert "fedreuse.deploy.flower.front_door" in became  # Flower's own program, behind the door
