"""The door of the SuperLink: who may hand over apps, and a stranger with the public certificate who tries."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fedreuse.deploy.flower import front_door
from fedreuse.deploy.flower.app_folder import write_app
from fedreuse.deploy.flower.authority import make_authority
from fedreuse.deploy.flower.commands import environment
from fedreuse.deploy.flower.front_door import FrontDoor, owner_of
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.local.federation import LocalFederation
from tests.tiny import tiny

NOBODY = 65534
MAY_READ = "+dac_override,+dac_read_search"  # the interpreter may lie in somebody's home
AS_NOBODY = [
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", f"--inh-caps={MAY_READ}",
    f"--ambient-caps={MAY_READ}", "--",
]  # fmt: skip
CONTROL = ["/v1/control/start-run", "/v1/control/register-node", "/v1/runtime/x", "/docs", "/", "/v1/fleet"]


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_kernel_says_whose_a_connection_is(family: socket.AddressFamily, host: str) -> None:
    with closing(socket.socket(family)) as listening:
        listening.bind((host, 0))
        listening.listen(1)
        with closing(socket.create_connection(listening.getsockname()[:2])) as calling:
            here, peer = listening.getsockname()[:2], calling.getsockname()[:2]
            assert owner_of(peer, here) == os.geteuid()
            assert owner_of((peer[0], peer[1] ^ 1), here) is None
            assert owner_of(("192.0.2.77", peer[1]), here) is None


@pytest.mark.parametrize("path", ["/v1/fleet/push-messages", *CONTROL])
@pytest.mark.parametrize("is_encrypted", [True, False])
@pytest.mark.parametrize("who", ["myself", "root", "another user", "another machine", "unknown"])
def test_who_may_do_what(monkeypatch: pytest.MonkeyPatch, path: str, is_encrypted: bool, who: str) -> None:
    owners = {"myself": os.geteuid(), "root": 0, "another user": os.geteuid() + 1, "another machine": None}
    monkeypatch.setattr(front_door, "owner_of", lambda peer, here: owners[who])
    client = None if who == "unknown" else ("127.0.0.1", 5)
    is_fleet = path == "/v1/fleet/push-messages"
    expected = {
        "myself": True,
        "root": True,
        "another user": is_fleet and is_encrypted,
        "another machine": is_fleet,
        "unknown": is_fleet and is_encrypted,
    }[who]
    sent = asyncio.run(
        knock({"type": "http", "path": path, "client": client, "server": ("127.0.0.1", 8)}, is_encrypted)
    )
    assert (sent[0]["status"] == 200) == expected
    assert expected or (sent[0]["status"] == 403 and b"on its own machine" in sent[1]["body"])


async def knock(scope: dict[str, Any], is_encrypted: bool) -> list[Any]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        await send({"status": 200})

    await FrontDoor(inside, is_encrypted)(scope, None, send)  # type: ignore[arg-type]
    return sent


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that another user can read."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can be another user")
@pytest.mark.parametrize("is_encrypted", [True, False])
def test_a_stranger_with_the_public_certificate_hands_over_nothing(
    tmp_path: Path, outside: Path, is_encrypted: bool
) -> None:
    authority = make_authority(tmp_path / "authority", 1) if is_encrypted else None
    theirs = make_authority(outside / "theirs", 1)
    write_app(tiny(), Deployment(), outside / "app")
    with LocalFederation(tmp_path / "federation", 0, authority) as federation:
        security = "insecure = true"
        if authority is not None:
            shutil.copy(authority.root, outside / "ca.pem")  # all that a stranger needs to have
            security = f'root-certificates = "{outside / "ca.pem"}"'
        (outside / "config.toml").write_text(
            f'[superlink]\ndefault = "it"\n\n[superlink.it]\naddress = "{federation.address}"\n{security}\n'
        )
        subprocess.run(["chown", "-R", str(NOBODY), str(outside)], check=True)
        for words in (
            ["supernode", "register", str(theirs.node_public_key(0)), "it"],
            ["run", str(outside / "app"), "it"],
            ["supernode", "list", "it"],
        ):
            told = flower_as_nobody(outside, words)
            assert told.returncode != 0, told.stdout
            assert "403" in told.stdout + told.stderr or "refused" in told.stdout + told.stderr
        assert "refused '/v1/control/start-run'" in (federation.folder / "superlink.log").read_text()
        assert "theirs" not in federation.flower("supernode", "list", "local")  # we ourselves may ask
        if authority is not None:
            federation.flower("supernode", "register", str(authority.node_public_key(0)), "local")


def flower_as_nobody(home: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    given = {**environment(home), "HOME": str(home)}
    return subprocess.run(
        [*AS_NOBODY, "flwr", *words], env=given, cwd=home, capture_output=True, text=True, check=False
    )
