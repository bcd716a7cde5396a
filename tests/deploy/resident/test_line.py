"""The line to the worker: the token decides who is heard, and long paths are no obstacle."""

from __future__ import annotations

import socket
import stat
from pathlib import Path
from threading import Thread

import pytest

import fedreuse
from fedreuse.deploy.resident import line
from fedreuse.deploy.resident.line import TOKEN_FILE, called, greeted, listening, receive, send


def answering(folder: Path, heard: list[object]) -> Thread:
    """A worker's side for one caller."""
    server = listening(folder)

    def serve() -> None:
        with server, server.accept()[0] as connection:
            try:
                heard.append(greeted(connection, folder))
                heard.append(receive(connection))
            except OSError as error:
                heard.append(type(error).__name__)

    thread = Thread(target=serve)
    thread.start()
    return thread


def test_who_shows_the_token_hears_the_version_and_is_heard(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)  # more than an address of a socket holds
    folder.mkdir()
    (folder / TOKEN_FILE).write_bytes(bytes(range(32)))
    heard: list[object] = []
    thread = answering(folder, heard)
    body = bytes(3 << 20)
    with called(folder) as (connection, version):
        send(connection, "job", 1.5, body)
    thread.join()
    assert version == fedreuse.__version__
    assert heard == [True, ("job", 1.5, body)]


def test_the_socket_is_for_its_owner_alone(tmp_path: Path) -> None:
    with listening(tmp_path):
        assert stat.S_IMODE((tmp_path / "socket").stat().st_mode) == 0o700


@pytest.mark.parametrize("shown", [bytes(32), bytes(range(1, 33)), b"short"])
def test_a_stranger_hears_nothing(tmp_path: Path, shown: bytes) -> None:
    (tmp_path / TOKEN_FILE).write_bytes(bytes(range(32)))
    heard: list[object] = []
    thread = answering(tmp_path, heard)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(tmp_path / "socket"))
        connection.sendall(shown)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    thread.join()
    assert heard[0] in (False, "ConnectionError")


def test_nobody_there_and_somebody_who_does_not_greet_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / TOKEN_FILE).write_bytes(bytes(32))
    with pytest.raises(FileNotFoundError), called(tmp_path):
        pass
    silent = listening(tmp_path)
    monkeypatch.setattr(line, "GREETING_SECONDS", 0.01)
    with pytest.raises(TimeoutError), called(tmp_path):
        pass
    silent.close()
    with pytest.raises(ConnectionRefusedError), called(tmp_path):
        pass
    listening(tmp_path).close()  # what a dead worker left gives way
