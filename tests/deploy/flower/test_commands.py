"""Flower's programs: offline always, in plain text only where nobody else listens."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.deploy.flower.authority import make_authority
from fedreuse.deploy.flower.commands import OFFLINE, check_insecure, environment, superlink_command, supernode_command


def test_every_process_is_told_to_stay_offline(tmp_path: Path) -> None:
    given = environment(tmp_path)
    assert {key: given[key] for key in OFFLINE} == OFFLINE
    assert given["FLWR_HOME"] == str(tmp_path)
    assert "--disable-runtime-dependency-installation" in superlink_command("127.0.0.1", 1, None)


def test_with_an_authority_nothing_is_insecure_and_nodes_are_known(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, 1)
    superlink = superlink_command("0.0.0.0", 8000, authority)
    keys = authority.root, authority.node_key(0)
    node = supernode_command("server:8000", 9094, {"partition-id": 0}, keys, tmp_path / "store")
    assert "--insecure" not in superlink + node
    assert "--enable-supernode-auth" in superlink
    assert node[-2:] == ["--auth-supernode-private-key", str(tmp_path / "node-0.key")]


def test_programs_of_flower_itself() -> None:
    assert superlink_command("127.0.0.1", 1, None, is_guarded=False)[0] == "flower-superlink"
    assert supernode_command("127.0.0.1:1", 2, {}, (None, None), None, is_guarded=False)[0] == "flower-supernode"
    assert "fedreuse.deploy.flower.front_door" in supernode_command("127.0.0.1:1", 2, {}, (None, None), None)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.8.8.8"])
def test_plain_text_on_loopback_is_said_once(host: str) -> None:
    check_insecure(host, 1)
    with pytest.raises(ConfigError, match="--authority"):
        check_insecure(host, 0)


@pytest.mark.parametrize("host", ["0.0.0.0", "server.example", "192.168.0.7", "::"])
def test_plain_text_elsewhere_must_be_said_twice(host: str) -> None:
    with pytest.raises(ConfigError, match="twice"):
        check_insecure(host, 1)
    check_insecure(host, 2)
