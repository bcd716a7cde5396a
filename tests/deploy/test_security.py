"""TLS and known nodes: who has no registered key, speaks plain text or changes a byte on the way gets nowhere."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from fedreuse.deploy.flower.authority import Authority, make_authority
from fedreuse.deploy.flower.commands import LOOPBACK, supernode_command
from fedreuse.deploy.flower.options import Deployment
from fedreuse.deploy.local.federation import LocalFederation, free_port
from fedreuse.deploy.local.run import run_on
from fedreuse.runs.launch import run
from tests.tiny import results, tiny

ADMITTED = "SuperNode ID:"


@pytest.mark.slow
def test_strangers_get_nowhere_and_the_run_has_the_bits_of_a_simulation(tmp_path: Path) -> None:
    authority = make_authority(tmp_path / "authority", 1)
    foreign = make_authority(tmp_path / "foreign", 1)  # a root nobody trusts, a key nobody registered
    config = tiny(task={"clients": 1}, rounds={"count": 1, "cohort": 1})
    with LocalFederation(tmp_path / "federation", 1, authority) as federation:
        intruders = {
            "unknown node": (authority.root, None),
            "wrong key": (authority.root, foreign.node_key(0)),
            "plain text": (None, None),
            "wrong root": (foreign.root, authority.node_key(0)),
        }
        for number, (name, (root, key)) in enumerate(intruders.items(), start=100):
            federation.nodes[number] = intrude(federation, name, root, key)
        check_plain_text_is_not_answered(federation)
        check_a_changed_byte_is_noticed(federation, authority)
        run_on(federation, config, Deployment(out=str(tmp_path / "out")))
        told = {name: (federation.folder / f"{name}.log").read_text() for name in intruders}
        assert ADMITTED in (federation.folder / "node-0.log").read_text()
    assert [name for name in intruders if ADMITTED in told[name]] == []
    assert (tmp_path / "out" / "log.txt").read_text().count("is client 0") == 1
    run(config, tmp_path / "simulated")
    assert results(tmp_path / "out") == results(tmp_path / "simulated")


def intrude(federation: LocalFederation, name: str, root: Path | None, key: Path | None) -> subprocess.Popen[bytes]:
    """A SuperNode that claims to be client 0; the federation stops it with everything else."""
    store = federation.folder / "intruder"
    told = {"partition-id": 0, "store": str(store)}
    command = supernode_command(federation.address, free_port(), told, (root, key), None)
    return federation._start(command, name, store / name)


def check_plain_text_is_not_answered(federation: LocalFederation) -> None:
    with closing(socket.create_connection((LOOPBACK, federation.port))) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: superlink\r\n\r\n")
        plain.settimeout(30)
        answer = b""
        with suppress(ConnectionResetError):
            answer = plain.recv(100)
    assert not answer.startswith(b"HTTP")


def check_a_changed_byte_is_noticed(federation: LocalFederation, authority: Authority) -> None:
    """The same request, through a relay that changes nothing, and through one that changes a byte of the request."""
    assert ask(federation.port, authority).startswith(b"HTTP/1.1")
    with relay(federation.port, lambda data: data) as port:
        assert ask(port, authority).startswith(b"HTTP/1.1")
    with relay(federation.port, tamper) as port:
        assert ask(port, authority) == b""


def tamper(data: bytes) -> bytes:
    """Change the last byte of what looks like an encrypted record (type 23)."""
    return data[:-1] + bytes([data[-1] ^ 1]) if data[:1] == b"\x17" else data


def ask(port: int, authority: Authority) -> bytes:
    trust = ssl.create_default_context(cafile=str(authority.root))
    with closing(socket.create_connection((LOOPBACK, port), timeout=30)) as plain:
        try:
            with trust.wrap_socket(plain, server_hostname=LOOPBACK) as secured:
                secured.sendall(b"GET / HTTP/1.1\r\nHost: superlink\r\nConnection: close\r\n\r\n")
                return secured.recv(100)
        except (ssl.SSLError, ConnectionError):
            return b""


@contextmanager
def relay(target: int, change: Callable[[bytes], bytes]) -> Iterator[int]:
    """One connection through; what the client sends passes `change`."""
    with socket.socket() as door:
        door.bind((LOOPBACK, 0))
        door.listen(1)

        def serve() -> None:
            inside, _ = door.accept()
            outside = socket.create_connection((LOOPBACK, target))
            back = threading.Thread(target=pump, args=(outside, inside, lambda data: data))
            back.start()
            pump(inside, outside, change)
            back.join()
            inside.close()
            outside.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield door.getsockname()[1]
        thread.join()


def pump(source: socket.socket, sink: socket.socket, change: Callable[[bytes], bytes]) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(change(data))
            time.sleep(0)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
