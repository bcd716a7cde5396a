"""Connection between the process of a message and the resident worker: a Unix socket in a private folder.

The caller sends the token in the folder, and the worker answers with its version; then the caller sends one job, and
gets one answer. A connection that ends without an answer means that the caller must do the job itself.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path
from typing import Any

import msgpack

import fedreuse

__all__ = ["TOKEN_FILE", "VARIABLE", "Job", "called", "greeted", "listening", "receive", "send"]

VARIABLE = "FEDREUSE_RESIDENT"
"""Environment variable with the worker's folder, set by its SuperNode; unset without a worker."""
TOKEN_FILE = "token"
GREETING_SECONDS = 30.0
_TOKEN_BYTES = 32
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Job:
    """One Flower message for one client app."""

    target: str
    """App as `package.module:name`."""
    home: str
    """Folder of the app's top-level package."""
    seconds: float
    """Time to live of the message."""
    task: int
    message: bytes
    context: bytes


@contextmanager
def called(folder: Path) -> Iterator[tuple[socket.socket, str]]:
    """Connect to the worker, and yield the connection and its version.

    Raises:
        OSError: There is no worker, it refuses the token, or it does not answer in time.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(GREETING_SECONDS)
        with _socket_path(folder) as path:
            connection.connect(path)
        connection.sendall((folder / TOKEN_FILE).read_bytes())
        (version,) = receive(connection)
        yield connection, str(version)


def greeted(connection: socket.socket, folder: Path) -> bool:
    """Check the caller's token at the worker, and send the version; return whether the token is right."""
    connection.settimeout(GREETING_SECONDS)
    token = _exactly(connection, _TOKEN_BYTES)
    if not compare_digest(token, (folder / TOKEN_FILE).read_bytes()):
        return False
    send(connection, fedreuse.__version__)
    return True


def listening(folder: Path) -> socket.socket:
    """Return the worker's listening socket; the socket of a dead worker is replaced."""
    (folder / "socket").unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX)
    with _socket_path(folder) as path:
        server.bind(path)
    (folder / "socket").chmod(0o700)  # no other user may connect, whatever the folder's mode becomes
    server.listen()
    return server


def send(connection: socket.socket, *parts: Any) -> None:
    """Send plain values as one message."""
    data = msgpack.packb(parts)
    connection.sendall(_LENGTH.pack(len(data)))
    connection.sendall(data)


def receive(connection: socket.socket) -> tuple[Any, ...]:
    """Receive the values of one message; raise ConnectionError if the other end is gone."""
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    values: tuple[Any, ...] = msgpack.unpackb(_exactly(connection, length), use_list=False)
    return values


def _exactly(connection: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        piece = connection.recv(min(length - len(data), 1 << 20))
        if not piece:
            raise ConnectionError("the other end is gone")
        data += piece
    return bytes(data)


@contextmanager
def _socket_path(folder: Path) -> Iterator[str]:
    """Yield a short path of the socket through an open descriptor: addresses of Unix sockets have at most 107 bytes."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/socket"
    finally:
        os.close(descriptor)
