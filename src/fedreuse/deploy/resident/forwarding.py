"""Client app that forwards messages to the resident worker, or answers them here without one.

Flower starts a process for every message, which should import only this module and Flower itself.
"""

from __future__ import annotations

import logging
import os
import time
from dataclasses import astuple
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from flwr.clientapp import ClientApp

import fedreuse
from fedreuse.core.errors import ConfigError, RunError
from fedreuse.deploy.flower.private import (
    context_from_bytes,
    context_to_bytes,
    message_from_bytes,
    message_to_bytes,
    task_id,
)
from fedreuse.deploy.resident.line import TOKEN_FILE, VARIABLE, Job, called, receive, send

if TYPE_CHECKING:
    from socket import socket

    from flwr.app import Context, Message

__all__ = ["ResidentApp"]

_log = logging.getLogger("flwr")
_REPLACED_SECONDS = 60.0
"""Longest wait for a worker that is starting: longer than its imports take on a busy machine."""
_POLL_SECONDS = 0.05


class ResidentApp(ClientApp):
    """Client app that a resident worker beside the SuperNode keeps in memory, with its imports and data.

    Args:
        target: Your real `ClientApp`, as `package.module:name`. The module that makes the `ResidentApp` must not import
            that module, since its imports are repeated for every message.

    Without a worker (another SuperNode than `fedreuse supernode`, or `--no-resident`) the app answers in the process of
    the message, as usual in Flower. The same happens if the worker ends before its answer: an app must be able to
    answer a message twice from the same context.

    Raises:
        ConfigError: `target` does not name a client app.
        RunError: The worker did not answer within the message's time to live.

    Example:
        >>> from fedreuse.deploy import ResidentApp
        >>> app = ResidentApp("my_app.work:app")
        >>> app.target
        'my_app.work:app'
    """

    def __init__(self, target: str) -> None:
        """Keep the name; nothing is imported yet."""
        super().__init__()
        self.target = target

    def __call__(self, message: Message, context: Context) -> Message:
        """Forward one message, or answer it here."""
        reply = _forward(self.target, message, context)
        return loaded(self.target)(message, context) if reply is None else reply


def loaded(target: str) -> ClientApp:
    """Import and return the app of a target."""
    module, _, name = target.partition(":")
    app = getattr(import_module(module), name, None)
    if not isinstance(app, ClientApp):
        raise ConfigError(f"ResidentApp: {target!r} is not a ClientApp; write package.module:name of the app itself")
    return app


def _forward(target: str, message: Message, context: Context) -> Message | None:
    """Return the worker's reply; None without a worker that can answer."""
    if VARIABLE not in os.environ:
        return None
    folder, seconds, began = Path(os.environ[VARIABLE]), float(message.metadata.ttl), time.monotonic()
    job = Job(
        target,
        _home(target),
        seconds,
        task_id(),
        message_to_bytes(message),
        context_to_bytes(context),
    )
    result = _result_of(folder, job)
    if result is not None:
        context.state = context_from_bytes(result[1]).state
        return message_from_bytes(result[0])
    if time.monotonic() - began >= seconds:
        raise RunError(f"the resident worker gave no answer within {seconds:g} s; it is being replaced")
    _log.warning("no answer from the resident worker; this process answers")
    return None


def _result_of(folder: Path, job: Job) -> tuple[bytes, bytes] | None:
    """Return reply and context of a job; None if it must be done here."""
    deadline = time.monotonic() + _REPLACED_SECONDS
    while (folder / TOKEN_FILE).exists() and time.monotonic() < deadline:
        try:
            with called(folder) as (connection, version):
                if version != fedreuse.__version__:
                    return None
                connection.settimeout(None)  # the keeper kills a worker that takes too long, which ends the connection
                return _answered(connection, job)
        except TimeoutError:
            return None  # the worker hangs
        except OSError:
            time.sleep(_POLL_SECONDS)  # the worker is starting, or being replaced
    return None


def _answered(connection: socket, job: Job) -> tuple[bytes, bytes] | None:
    try:
        send(connection, *astuple(job))
        message, context = receive(connection)
    except OSError:
        return None
    return message, context


def _home(target: str) -> str:
    """Return the folder of a target's top-level package."""
    spec = find_spec(target.partition(":")[0].partition(".")[0])
    places = [] if spec is None else [*(spec.submodule_search_locations or filter(None, [spec.origin]))]
    if not places:
        raise ConfigError(f"ResidentApp: {target!r} cannot be imported; write package.module:name of the app itself")
    return str(Path(places[0]).resolve().parent)
