"""Flower's SuperLink behind a door: nodes come in, and nobody may hand over apps but the user who started it.

Flower serves three APIs on one port: Fleet for the nodes, which prove their keys; Control, which takes apps and
registers keys from anybody; Runtime for the server app. `python -m fedreuse.deploy.flower.front_door` takes the
arguments of `flower-superlink` and lets strangers reach Fleet alone.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

__all__ = ["FrontDoor", "main", "owner_of"]

_FLEET = "/v1/fleet/"
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_REFUSED = (
    b"refused: this SuperLink takes apps and keys from the user who started it, on its own machine; "
    b"run flwr there, for example through ssh"
)
_log = logging.getLogger("flwr")
Address = tuple[str, int]
App = Callable[..., Awaitable[None]]


class FrontDoor:
    """An ASGI middleware. A connection from a process of the same user, or of root, may do everything.

    Others reach Fleet; without encryption those on this machine do not even reach that, so that a federation on
    loopback is closed to its other users.
    """

    def __init__(self, app: App, is_encrypted: bool) -> None:
        """`is_encrypted`: nodes prove who they are."""
        self._app, self._is_encrypted = app, is_encrypted

    async def __call__(self, scope: Mapping[str, Any], receive: App, send: App) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] not in ("http", "websocket") or self._may_pass(scope):
            await self._app(scope, receive, send)
            return
        _log.warning("refused %.80r from %s: not the user who started this", scope["path"], scope.get("client"))
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(_REFUSED)).encode())]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": _REFUSED})

    def _may_pass(self, scope: Mapping[str, Any]) -> bool:
        is_fleet = str(scope["path"]).startswith(_FLEET)
        if is_fleet and self._is_encrypted:
            return True
        if scope.get("client") is None or scope.get("server") is None:
            return False
        owner = owner_of(tuple(scope["client"]), tuple(scope["server"]))
        if owner is None:  # it comes from another machine
            return is_fleet
        return owner in (0, os.geteuid())


def owner_of(peer: Address, here: Address) -> int | None:
    """The user whose process on this machine holds the other end of a connection; None if it is elsewhere."""
    wanted = {(local, remote) for local, remote in zip(_forms(peer), _forms(here), strict=True)}
    for table in _TABLES:
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            words = line.split()
            if (words[1], words[2]) in wanted:
                return int(words[7])
    return None


def _forms(address: Address) -> tuple[str, str]:
    """An address as the kernel's two tables write it."""
    found, port = ip_address(address[0].partition("%")[0]), f":{address[1]:04X}"
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if isinstance(found, IPv4Address):
        return _hex(found.packed) + port, _hex(IPv6Address(f"::ffff:{found}").packed) + port
    return "", _hex(found.packed) + port


def _hex(packed: bytes) -> str:
    """Words of 32 bits, each in the machine's own order."""
    words = struct.unpack(f"!{len(packed) // 4}I", packed)
    return "".join(f"{socket.htonl(word):08X}" for word in words)


def main() -> None:
    """`flower-superlink` with the door in front of everything else."""
    import sys

    from flwr.superlink import extensions
    from flwr.superlink.cli import flower_superlink
    from starlette.middleware import Middleware

    os.environ["FORWARDED_ALLOW_IPS"] = ""  # nobody says for others where they come from
    door = Middleware(FrontDoor, is_encrypted="--insecure" not in sys.argv)
    inside = extensions.get_middleware
    extensions.get_middleware = lambda: (door, *inside())
    flower_superlink()


if __name__ == "__main__":
    main()
