"""Resident worker: it imports, loads and trains, and answers one job after the other in its main thread.

The keeper starts `python -m fedreuse.deploy.resident.worker FOLDER DESCRIPTOR APP`. Through the descriptor the worker
reports the time limit of a job in seconds when it begins, and 0 when it ends. Any irregularity ends the process, and
the keeper starts another.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

from fedreuse.core.errors import FedreuseError
from fedreuse.deploy.flower.private import (
    context_from_bytes,
    context_to_bytes,
    message_from_bytes,
    message_to_bytes,
    set_identity,
)
from fedreuse.deploy.resident.forwarding import loaded
from fedreuse.deploy.resident.line import Job, greeted, listening, receive, send

if TYPE_CHECKING:
    from flwr.clientapp import ClientApp

__all__ = ["Code", "main", "play", "serve"]

_SET_PARENT_DEATH_SIGNAL = 1
_SEND_SECONDS = 60.0
_log = logging.getLogger("flwr")


class Code:
    """Files of the imported modules, to notice changes by an upgrade or an edit."""

    def __init__(self) -> None:
        """Start without known files."""
        self._known: dict[str, tuple[int, int] | None] = {}

    def has_changed(self) -> bool:
        """Return whether a file has changed since the first call that saw it."""
        files = {str(file) for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))}
        stamps = {file: _stamp(file) for file in files}
        return any(self._known.setdefault(file, stamp) != stamp for file, stamp in stamps.items())


def _stamp(file: str) -> tuple[int, int] | None:
    try:
        status = Path(file).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def play(job: Job) -> tuple[bytes, bytes]:
    """Answer one message with its app; return reply and context."""
    message = message_from_bytes(job.message)
    context = context_from_bytes(job.context)
    set_identity(context.run_id, context.node_id, job.task)
    reply = _app(job)(message, context)
    return message_to_bytes(reply), context_to_bytes(context)


def _app(job: Job) -> ClientApp:
    """Return the app of a job; exit for another app of the same name, which needs a new process."""
    if job.home not in sys.path:
        sys.path.insert(0, job.home)
    app, module = loaded(job.target), sys.modules[job.target.partition(":")[0]]
    if not Path(str(module.__file__)).resolve().is_relative_to(job.home):
        raise SystemExit(f"{module.__name__} now comes from {job.home}; the worker is replaced")
    return app


def serve(folder: Path, tell: Callable[[float], object]) -> None:
    """Answer jobs until the code changes or an error ends the process."""
    jobs: SimpleQueue[tuple[Job, socket.socket]] = SimpleQueue()
    Thread(target=_accept, args=(listening(folder), folder, jobs), daemon=True).start()
    code = Code()
    code.has_changed()
    tell(0)
    while True:
        job, connection = jobs.get()
        with connection:
            if _is_gone(connection):
                continue
            if code.has_changed():
                raise SystemExit("the code on disk has changed; the worker is replaced")
            tell(job.seconds)
            result = _played(job)
            tell(0)
            connection.settimeout(_SEND_SECONDS)
            if result:
                with suppress(OSError):  # the caller is gone
                    send(connection, *result)


def _played(job: Job) -> tuple[bytes, ...]:
    """Return reply and context; empty if the app refuses, so that the process of the message reports the reason."""
    try:
        return play(job)
    except FedreuseError as error:
        _log.warning("resident worker: %s", error)
        return ()


def _accept(server: socket.socket, folder: Path, jobs: SimpleQueue[tuple[Job, socket.socket]]) -> None:
    """Accept callers while a job runs, so that they know that the worker is alive."""
    try:
        while True:
            _queue_job(server.accept()[0], folder, jobs)
    finally:
        os._exit(1)  # such as out of memory: a worker that accepts no callers must be replaced


def _queue_job(connection: socket.socket, folder: Path, jobs: SimpleQueue[tuple[Job, socket.socket]]) -> None:
    with suppress(OSError):
        if greeted(connection, folder):
            jobs.put((Job(*receive(connection)), connection))
            return
    connection.close()


def _is_gone(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def main() -> None:
    """Serve until the keeper or an error ends the process."""
    folder, reports, first = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the SuperNode, which ends this worker
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    try:
        loaded(first)  # import before the first message arrives
        serve(folder, lambda seconds: os.write(reports, f"{seconds}\n".encode()))
    except SystemExit as reason:
        _log.warning("resident worker: %s", reason)
    except BaseException:
        _log.exception("resident worker: it is replaced")
    finally:
        os._exit(1)  # no clean-up: the interpreter may be in any state


if __name__ == "__main__":
    main()
