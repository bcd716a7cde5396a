"""Flower's SuperLink with access control: only the user who started it may submit apps.

Flower serves three APIs on one port: Fleet for the nodes, which prove their keys; Control, which accepts apps and keys
without authentication; Runtime for the server app. `python -m fedreuse.deploy.flower.front_door` takes the arguments of
`flower-superlink` and restricts other users and machines to Fleet.
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
    b"refused: this SuperLink accepts apps and keys only from the user who started it, on its own machine; "
    b"run flwr there, for example through ssh"
)
_log = logging.getLogger("flwr")
Address = tuple[str, int]
App = Callable[..., Awaitable[None]]


class FrontDoor:
    """ASGI middleware that admits processes of the same user (or root) to all APIs, others to Fleet.

    Without encryption other users of this machine are refused at Fleet too: nodes then prove no key, and a federation
    on loopback must be closed to them.
    """

    def __init__(self, app: App, is_encrypted: bool) -> None:
        """Wrap an app; with `is_encrypted` nodes prove their keys."""
        self._app, self._is_encrypted = app, is_encrypted

    async def __call__(self, scope: Mapping[str, Any], receive: App, send: App) -> None:
        """Forward a request, or refuse it."""
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
        if owner is None:  # the connection comes from another machine
            return is_fleet
        return owner in (0, os.geteuid())


def owner_of(peer: Address, here: Address) -> int | None:
    """Return the user id of the process at the other end of a connection; None if it is on another machine."""
    wanted = {(local, remote) for local, remote in zip(_forms(peer), _forms(here), strict=True)}
    for table in _TABLES:
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            words = line.split()
            if (words[1], words[2]) in wanted:
                return int(words[7])
    return None


def _forms(address: Address) -> tuple[str, str]:
    """Return an address as the kernel writes it in /proc/net/tcp and /proc/net/tcp6."""
    parsed, port = ip_address(address[0].partition("%")[0]), f":{address[1]:04X}"
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    if isinstance(parsed, IPv4Address):
        return _hex(parsed.packed) + port, _hex(IPv6Address(f"::ffff:{parsed}").packed) + port
    return "", _hex(parsed.packed) + port


def _hex(packed: bytes) -> str:
    """Return words of 32 bits in hexadecimal, each in the machine's byte order."""
    words = struct.unpack(f"!{len(packed) // 4}I", packed)
    return "".join(f"{socket.htonl(word):08X}" for word in words)


def main() -> None:
    """Run `flower-superlink` with this middleware before all others."""
    import sys

    from flwr.superlink import extensions
    from flwr.superlink.cli import flower_superlink
    from starlette.middleware import Middleware

    os.environ["FORWARDED_ALLOW_IPS"] = ""  # ignore X-Forwarded-For: a client could claim any address
    door = Middleware(FrontDoor, is_encrypted="--insecure" not in sys.argv)
    own_middleware = extensions.get_middleware
    extensions.get_middleware = lambda: (door, *own_middleware())
    flower_superlink()


if __name__ == "__main__":
    main()
