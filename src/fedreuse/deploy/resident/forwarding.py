"""A client app that stays: messages are forwarded to the resident worker, or answered here where there is none.

Flower starts a process for every message. This module is all that such a process imports, beside Flower itself.
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
from flwr.common.serde import context_from_proto, context_to_proto, message_from_proto, message_to_proto
from flwr.proto.message_pb2 import Context as ProtoContext
from flwr.proto.message_pb2 import Message as ProtoMessage
from flwr.supercore.task_identity import TaskIdentity

import fedreuse
from fedreuse.core.errors import ConfigError, RunError
from fedreuse.deploy.resident.line import TOKEN_FILE, VARIABLE, Job, called, receive, send

if TYPE_CHECKING:
    from socket import socket

    from flwr.app import Context, Message

__all__ = ["ResidentApp"]

_log = logging.getLogger("flwr")
_REPLACED_SECONDS = 60.0
"""How long a worker that is being started is waited for: longer than its imports take on a busy machine."""
_POLL_SECONDS = 0.05


class ResidentApp(ClientApp):
    """A client app that a resident worker beside the SuperNode keeps in memory, with all that it imported and loaded.

    Args:
        target: Your real `ClientApp`, as `package.module:name`. The module that makes a `ResidentApp` must not import
            that module: it is started for every message, and what it imports is paid every time.

    Where no worker is (another SuperNode than `fedreuse supernode`, or `--no-resident`), the app is imported and
    answers in the process of the message, as Flower does it. So it does once more if the worker ends before its answer:
    an app must be able to play a message twice from the same context.

    Raises:
        ConfigError: `target` does not name a client app.
        RunError: The worker held the message until nobody waited for its answer any more.

    Example:
        >>> from fedreuse.deploy import ResidentApp
        >>> app = ResidentApp("my_app.work:app")
        >>> app.target
        'my_app.work:app'
    """

    def __init__(self, target: str) -> None:
        """Nothing is imported yet."""
        super().__init__()
        self.target = target

    def __call__(self, message: Message, context: Context) -> Message:
        """One message: forwarded, or answered here."""
        reply = _forward(self.target, message, context)
        return loaded(self.target)(message, context) if reply is None else reply


def loaded(target: str) -> ClientApp:
    """The app itself."""
    module, _, name = target.partition(":")
    app = getattr(import_module(module), name, None)
    if not isinstance(app, ClientApp):
        raise ConfigError(f"ResidentApp: {target!r} is no ClientApp; write package.module:name of the app itself")
    return app


def _forward(target: str, message: Message, context: Context) -> Message | None:
    """The worker's reply; None if there is no worker, or none that can."""
    if VARIABLE not in os.environ:
        return None
    folder, seconds, began = Path(os.environ[VARIABLE]), float(message.metadata.ttl), time.monotonic()
    job = Job(
        target,
        _home(target),
        seconds,
        TaskIdentity.task_id,
        message_to_proto(message).SerializeToString(),
        context_to_proto(context).SerializeToString(),
    )
    played = _played(folder, job)
    if played is not None:
        context.state = context_from_proto(ProtoContext.FromString(played[1])).state
        return message_from_proto(ProtoMessage.FromString(played[0]))
    if time.monotonic() - began >= seconds:
        raise RunError(f"the resident worker gave no answer within {seconds:g} s; it is being replaced")
    _log.warning("no answer from the resident worker; this process answers")
    return None


def _played(folder: Path, job: Job) -> tuple[bytes, bytes] | None:
    """What came of a job; None if it has to be done here."""
    deadline = time.monotonic() + _REPLACED_SECONDS
    while (folder / TOKEN_FILE).exists() and time.monotonic() < deadline:
        try:
            with called(folder) as (connection, version):
                if version != fedreuse.__version__:
                    return None
                connection.settimeout(None)  # whoever holds a job too long is killed, which ends the connection
                return _answered(connection, job)
        except TimeoutError:
            return None  # it is there, but hangs
        except OSError:
            time.sleep(_POLL_SECONDS)  # it is being started, or replaced
    return None


def _answered(connection: socket, job: Job) -> tuple[bytes, bytes] | None:
    try:
        send(connection, *astuple(job))
        message, context = receive(connection)
    except OSError:
        return None
    return message, context


def _home(target: str) -> str:
    """The folder in which the top package of a target lies."""
    spec = find_spec(target.partition(":")[0].partition(".")[0])
    places = [] if spec is None else [*(spec.submodule_search_locations or filter(None, [spec.origin]))]
    if not places:
        raise ConfigError(f"ResidentApp: {target!r} cannot be imported; write package.module:name of the app itself")
    return str(Path(places[0]).resolve().parent)
