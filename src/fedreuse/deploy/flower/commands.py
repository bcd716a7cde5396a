"""Command lines of Flower's programs: always offline, and encrypted except on loopback."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from fedreuse.core.errors import ConfigError
from fedreuse.deploy.flower.private import check_programs

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
"""Without these three every Flower process contacts other hosts, or installs packages."""


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a Flower process: offline, with this Python's programs first and its own FLWR_HOME."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, **OFFLINE, "PATH": path, "FLWR_HOME": str(home)}


def superlink_command(host: str, port: int, authority: Authority | None, is_guarded: bool = True) -> list[str]:
    """Return the command of a SuperLink; with an authority: TLS, and registered nodes only.

    Args:
        host: Address to listen on.
        port: Port to listen on.
        authority: Certificates and keys; None for plain text.
        is_guarded: Start it behind `front_door`; otherwise Flower's own program, unmodified.
    """
    if is_guarded:
        check_programs()
    # -P: modules in the working directory must not hide those of Python
    door = [sys.executable, "-P", "-m", "fedreuse.deploy.flower.front_door", "superlink"]
    start = door if is_guarded else ["flower-superlink"]
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
    is_guarded: bool = True,
) -> list[str]:
    """Return the command of the SuperNode of one client.

    Args:
        superlink: HOST:PORT of the SuperLink.
        port: Port on loopback for the node's own client app.
        node_config: Flower's node configuration.
        security: Root certificate and the node's private key; None for neither.
        resident: Folder of the resident worker; None for a process per message.
        is_guarded: Start it behind `front_door`; without it and a resident worker, Flower's own program, unmodified.
    """
    if is_guarded or resident is not None:
        check_programs()
    root, key = security
    node_settings = " ".join(f"{name}={json.dumps(value)}" for name, value in node_config.items())
    door = ["fedreuse.deploy.flower.front_door", "supernode"]
    ours = door if resident is None else ["fedreuse.deploy.resident.keeper", str(resident)]
    is_plain = resident is None and not is_guarded
    command = [
        *(["flower-supernode"] if is_plain else [sys.executable, "-P", "-m", *ours]),
        "--superlink", superlink, "--host", LOOPBACK, "--port", str(port), "--node-config", node_settings,
    ]  # fmt: skip
    command += ["--insecure"] if root is None else ["--root-certificates", str(root)]
    return command if key is None else [*command, "--auth-supernode-private-key", str(key)]


def resident_folder(store: Path) -> Path:
    """Return the folder of a node's resident worker: beside the client's state, under a name that no run can have."""
    return store.absolute() / ".resident"


def check_insecure(host: str, times_given: int) -> None:
    """Raise ConfigError for plain text without --insecure, and beyond loopback without --insecure twice."""
    if times_given == 0:
        raise ConfigError(
            "choose the security: --authority FOLDER (`fedreuse authority FOLDER` makes one for tests), or "
            "--insecure on loopback"
        )
    if not _is_loopback(host) and times_given < 2:
        raise ConfigError(
            f"--insecure would send models to and from {host} in plain text, open to reading and tampering; use "
            "--authority FOLDER, or give --insecure twice on a network that you trust"
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
