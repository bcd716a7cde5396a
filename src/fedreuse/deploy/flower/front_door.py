"""Flower's SuperLink and SuperNode with access control: other users of the machine get nothing but the nodes' API.

Flower serves three APIs: Fleet for the nodes, which prove their keys under TLS; Control, which accepts apps and keys
without authentication; Runtime, which hands tasks and models to the processes of apps. The program
`python -m fedreuse.deploy.flower.front_door superlink|supernode` takes the arguments of `flower-superlink` or
`flower-supernode` and guards Control and Runtime twice: the caller must be a process of the same user or root, and must
know a secret (`control_token` for Control, Flower's own for Runtime, see `task_secrets`).
"""

from __future__ import annotations

import logging
import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable, Mapping
from hmac import compare_digest
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

from fedreuse.deploy.flower.private import program_part

__all__ = ["FrontDoor", "is_own_address", "main", "owner_of", "run_superlink", "run_supernode"]

_FLEET, _CONTROL = "/v1/fleet/", "/v1/control/"
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED, _NO_INODE = "01", "0"
_REFUSED = (
    b"refused: only the user who started this program may use it, on its own machine; run flwr there as that user, for "
    b"example through ssh, with the FLWR_HOME and an address that `fedreuse superlink` named"
)
_log = logging.getLogger("flwr")
Address = tuple[str, int]
App = Callable[..., Awaitable[None]]


class FrontDoor:
    """ASGI middleware that admits processes of the same user (or root) to all APIs, others to Fleet under TLS.

    Without encryption other users of this machine are refused at Fleet too: nodes then prove no key, and a federation
    on loopback must be closed to them. A caller that cannot be identified is refused.

    Args:
        app: The guarded app.
        is_encrypted: Whether nodes prove their keys at Fleet.
        control_token: Bearer token that every request to Control must have; None for none.
    """

    def __init__(self, app: App, is_encrypted: bool, control_token: str | None = None) -> None:
        """Wrap an app."""
        self._app, self._is_encrypted = app, is_encrypted
        self._header = None if control_token is None else f"Bearer {control_token}".encode()

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
        path = str(scope["path"])
        is_fleet = path.startswith(_FLEET)
        if is_fleet and self._is_encrypted:
            return True
        if scope.get("client") is None or scope.get("server") is None:
            return False
        peer = tuple(scope["client"])
        owner = owner_of(peer, tuple(scope["server"]))
        if owner is None:  # plain text beyond loopback serves nodes of other machines
            return is_fleet and not is_own_address(peer[0])
        return owner in (0, os.geteuid()) and (not path.startswith(_CONTROL) or self._has_token(scope))

    def _has_token(self, scope: Mapping[str, Any]) -> bool:
        given = [value for name, value in scope.get("headers", ()) if name.lower() == b"authorization"]
        return self._header is None or (len(given) == 1 and compare_digest(given[0], self._header))


def owner_of(peer: Address, here: Address) -> int | None:
    """Return the user id of the process that holds the other end of a connection.

    None if no process of this machine holds it: it is on another machine, or was closed. The kernel reports closed
    sockets with user 0 and inode 0, so only established ones with an inode count.
    """
    wanted = {(local, remote) for local, remote in zip(_forms(peer), _forms(here), strict=True)}
    for table in _TABLES:
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            words = line.split()
            if (words[1], words[2]) in wanted and words[3] == _ESTABLISHED and words[9] != _NO_INODE:
                return int(words[7])
    return None


def is_own_address(address: str) -> bool:
    """Return whether an address belongs to this machine: only then a socket can be bound to it."""
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    if isinstance(parsed, IPv6Address) and parsed.is_link_local:
        return True  # needs an interface to bind; refused rather than looked up
    with socket.socket(socket.AF_INET if isinstance(parsed, IPv4Address) else socket.AF_INET6) as probe:
        try:
            probe.bind((str(parsed), 0))
        except OSError:
            return False
    return True


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


def run_superlink() -> None:
    """Run `flower-superlink` behind a door, with the arguments of this process."""
    from starlette.middleware import Middleware

    from fedreuse.deploy.flower.control_token import issue_token
    from fedreuse.deploy.flower.task_secrets import task_starter

    extensions, flower_superlink = map(program_part, ("superlink_extensions", "flower_superlink"))
    host, port, root = _argument("--host"), int(_argument("--port")), _argument("--ssl-ca-certfile", "")
    token = issue_token(host, port, _argument("--ssl-certfile", ""))
    door = Middleware(FrontDoor, is_encrypted="--insecure" not in sys.argv, control_token=token)
    own_middleware = extensions.get_middleware
    extensions.get_middleware = lambda: (door, *own_middleware())
    os.environ["FORWARDED_ALLOW_IPS"] = ""  # ignore X-Forwarded-For: a client could claim any address
    with task_starter(host, port, root):
        flower_superlink()


def run_supernode() -> None:
    """Run `flower-supernode` with a guarded Runtime API, with the arguments of this process."""
    from fedreuse.deploy.flower.task_secrets import task_starter

    api, flower_supernode = map(program_part, ("supernode_main", "flower_supernode"))
    create_app = api.create_app

    def guarded(*arguments: Any, **options: Any) -> Any:
        app = create_app(*arguments, **options)
        app.add_middleware(FrontDoor, is_encrypted=False)  # the last one added is the outermost
        return app

    api.create_app = guarded
    os.environ["FORWARDED_ALLOW_IPS"] = ""
    with task_starter(_argument("--host"), int(_argument("--port")), ""):
        flower_supernode()


def _argument(name: str, default: str | None = None) -> str:
    """Return the value of an option of this process."""
    if name in sys.argv[:-1]:
        return sys.argv[sys.argv.index(name) + 1]
    if default is None:
        raise SystemExit(f"front_door needs {name} VALUE")
    return default


def main() -> None:
    """Run the program that the first argument names."""
    programs = {"superlink": run_superlink, "supernode": run_supernode}
    if len(sys.argv) < 2 or sys.argv[1] not in programs:
        raise SystemExit(f"usage: front_door {'|'.join(programs)} ARGUMENTS")
    programs[sys.argv.pop(1)]()


if __name__ == "__main__":
    main()
