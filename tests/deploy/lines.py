"""A server that says how much it got, and clients that send, for tests of lines and meters."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from fedreuse.deploy.meter.namespaces import why_not

needs_namespaces = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@contextmanager
def counting_server(reply_bytes: int = 0) -> Iterator[tuple[str, int]]:
    """Takes connections one after the other; answers each with how many bytes came, and so many more."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                total = 0
                try:
                    while data := connection.recv(65536):
                        total += len(data)
                    connection.sendall(f"{total:020d}".encode() + bytes(reply_bytes))
                except OSError:
                    continue

    thread = Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[:2]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


def exchange(address: tuple[str, int], num_bytes: int, timeout: float = 30.0) -> tuple[int, int]:
    """Send so many bytes; what the server says it got, and how many bytes of answer followed."""
    with socket.create_connection(address, timeout) as connection:
        connection.sendall(bytes(num_bytes))
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while data := connection.recv(65536):
            answer += data
        return int(answer[:20]), len(answer) - 20


def sending_command(address: tuple[str, int], num_bytes: int) -> list[str]:
    """The same in a process of its own; prints what the server says it got."""
    code = (
        "import socket, sys; c = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30);"
        "c.sendall(bytes(int(sys.argv[3]))); c.shutdown(1); print(int(c.recv(20)))"
    )
    return [sys.executable, "-c", code, address[0], str(address[1]), str(num_bytes)]
