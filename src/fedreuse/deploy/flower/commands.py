"""How Flower's programs are started: always offline, encrypted unless on loopback, nodes known by their keys."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from fedreuse.core.errors import ConfigError

if TYPE_CHECKING:
    from fedreuse.deploy.flower.authority import Authority

__all__ = [
    "LOOPBACK",
    "OFFLINE",
    "check_insecure",
    "environment",
    "resident_folder",
    "superlink_command",
    "supernode_command",
]

LOOPBACK = "127.0.0.1"
OFFLINE = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
}
"""Without these three every Flower process looks up outside hosts, or installs packages."""


def environment(home: Path) -> dict[str, str]:
    """What a Flower process is given: no look outside, our own Python's programs first, a home of its own."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, **OFFLINE, "PATH": path, "FLWR_HOME": str(home)}


def superlink_command(host: str, port: int, authority: Authority | None) -> list[str]:
    """A SuperLink behind our door; with an authority it speaks TLS and admits registered nodes alone."""
    # -P: modules in the folder where it is started do not hide those of Python
    start = [sys.executable, "-P", "-m", "fedreuse.deploy.flower.front_door"]
    command = [*start, "--host", host, "--port", str(port), "--disable-runtime-dependency-installation"]
    if authority is None:
        return [*command, "--insecure"]
    certificate, key = authority.superlink
    return [
        *command, "--ssl-ca-certfile", str(authority.root), "--ssl-certfile", str(certificate),
        "--ssl-keyfile", str(key), "--enable-supernode-auth",
    ]  # fmt: skip


def supernode_command(
    superlink: str,
    port: int,
    node_config: Mapping[str, str | int | bool],
    security: tuple[Path | None, Path | None],
    resident: Path | None,
) -> list[str]:
    """The SuperNode of one client, with the folder of its resident worker, if it has one.

    `security` are the root certificate and the node's key; its own client app talks to it on loopback.
    """
    root, key = security
    told = " ".join(f"{name}={json.dumps(value)}" for name, value in node_config.items())
    keeper = [sys.executable, "-P", "-m", "fedreuse.deploy.resident.keeper", str(resident)]
    command = [
        *(["flower-supernode"] if resident is None else keeper),
        "--superlink", superlink, "--host", LOOPBACK, "--port", str(port), "--node-config", told,
    ]  # fmt: skip
    command += ["--insecure"] if root is None else ["--root-certificates", str(root)]
    return command if key is None else [*command, "--auth-supernode-private-key", str(key)]


def resident_folder(store: Path) -> Path:
    """Where the worker of a node is reached: beside what its client remembers, under a name that no run can have."""
    return store.absolute() / ".resident"


def check_insecure(host: str, times_said: int) -> None:
    """Plain text stays on this machine, unless the user insists."""
    if times_said == 0:
        raise ConfigError(
            "say how to be secure: --authority FOLDER (`fedreuse authority FOLDER` makes one for tests), "
            "or --insecure on loopback"
        )
    if not _is_loopback(host) and times_said < 2:
        raise ConfigError(
            f"--insecure would send models in plain text to and from {host}, for anybody to read and change; use "
            "--authority FOLDER, or say --insecure twice if you know that the network is yours"
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
