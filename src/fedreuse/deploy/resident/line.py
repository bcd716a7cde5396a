"""Between the process of a message and the resident worker: a Unix socket in a folder that is its owner's alone.

Whoever connects shows the token that lies in the folder; the worker answers with its version; then one job goes in and
one answer comes out. A connection that ends without an answer says that the job has to be done elsewhere.
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
"""The folder of the worker, for the processes that its SuperNode starts; where it is not set, there is none."""
TOKEN_FILE = "token"
GREETING_SECONDS = 30.0
_TOKEN_BYTES = 32
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Job:
    """One Flower message for one client app."""

    target: str
    """The app, `package.module:name`."""
    home: str
    """The folder that its package lies in."""
    seconds: float
    """How long somebody waits for the answer."""
    task: int
    message: bytes
    context: bytes


@contextmanager
def called(folder: Path) -> Iterator[tuple[socket.socket, str]]:
    """A connection to the worker, and its version; an OSError if it is not there, not ours, or does not greet."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(GREETING_SECONDS)
        with _opened(folder) as place:
            connection.connect(place)
        connection.sendall((folder / TOKEN_FILE).read_bytes())
        (version,) = receive(connection)
        yield connection, str(version)


def greeted(connection: socket.socket, folder: Path) -> bool:
    """At the worker: whether the caller knows the token; if so it is told the version."""
    connection.settimeout(GREETING_SECONDS)
    shown = _exactly(connection, _TOKEN_BYTES)
    if not compare_digest(shown, (folder / TOKEN_FILE).read_bytes()):
        return False
    send(connection, fedreuse.__version__)
    return True


def listening(folder: Path) -> socket.socket:
    """The worker's end; what a dead one left gives way."""
    (folder / "socket").unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX)
    with _opened(folder) as place:
        server.bind(place)
    server.listen()
    return server


def send(connection: socket.socket, *parts: Any) -> None:
    """Plain values, as one message."""
    data = msgpack.packb(parts)
    connection.sendall(_LENGTH.pack(len(data)))
    connection.sendall(data)


def receive(connection: socket.socket) -> tuple[Any, ...]:
    """The values again; a ConnectionError if the other end is gone."""
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
def _opened(folder: Path) -> Iterator[str]:
    """The socket's address, through an open folder: the address of a Unix socket may have 107 bytes, a path more."""
    opened = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{opened}/socket"
    finally:
        os.close(opened)
