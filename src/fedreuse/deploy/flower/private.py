"""Undocumented parts of Flower, all of them; `tests/deploy/flower/test_private.py` names what a new version changed.

Apps with compression need `remade`, `calling_app`, `of_type`, `serialized_bytes`, `check_replies` and
`seconds_since_submission`, in every supported version. The rest is for the guarded SuperLink and the resident
SuperNode, which extend the programs of one.
"""

from __future__ import annotations

import sys
from copy import copy
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from flwr.app import Context, Error, Message, RecordDict

from fedreuse.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from flwr.serverapp import Grid

__all__ = [
    "PROGRAM_PARTS",
    "calling_app",
    "check_programs",
    "check_replies",
    "context_from_bytes",
    "context_to_bytes",
    "is_on_wire",
    "message_from_bytes",
    "message_to_bytes",
    "of_type",
    "program_part",
    "remade",
    "seconds_since_submission",
    "serialized_bytes",
    "set_identity",
    "speaks_http",
    "task_id",
]

_PROGRAMS = "1.41."
PROGRAM_PARTS = {
    "OidcCliPlugin": "flwr.cli.auth_plugin.oidc_cli_plugin:OidcCliPlugin",
    "resolve_bind_address": "flwr.supercore.address:resolve_bind_address",
    "AccountAuthCredentials": "flwr.supercore.auth.typing:AccountAuthCredentials",
    "flower_superexec": "flwr.supercore.cli:flower_superexec",
    "TASK_TYPE_TO_APPIO_API_ADDRESS_ARG": "flwr.supercore.constant:TASK_TYPE_TO_APPIO_API_ADDRESS_ARG",
    "TASK_TYPE_TO_COMMAND": "flwr.supercore.constant:TASK_TYPE_TO_COMMAND",
    "SubprocessExecutor": "flwr.supercore.superexec.executor.subprocess_executor:SubprocessExecutor",
    "LaunchResult": "flwr.supercore.superexec.executor.types:LaunchResult",
    "flower_superlink": "flwr.superlink.cli:flower_superlink",
    "superlink_extensions": "flwr.superlink.extensions",
    "flower_supernode": "flwr.supernode.cli:flower_supernode",
    "supernode_main": "flwr.supernode.main",
}
"""Parts of Flower's programs, as `module:attribute` or `module`."""


def remade(reply: Message, content: RecordDict | Error, message_id: str) -> Message:
    """Return a reply with other content, or an error, that answers the message with an id.

    Flower's own constructor makes replies only from the request, with the id of that request; a request that was sent
    twice has two, and its sender knows the first.
    """
    make: Any = Message
    reply.metadata.__dict__["_reply_to_message_id"] = message_id
    made: Message = make(content, metadata=reply.metadata)
    return made


def calling_app() -> Callable[[Message, Context], Message] | None:
    """Return the client app that handles the current message, found on the stack; None outside of one.

    Flower hands a mod the function for one type of message only; the app has those for the others.
    """
    from flwr.clientapp import ClientApp

    frame = sys._getframe(1)
    while frame is not None:
        if isinstance(app := frame.f_locals.get("self"), ClientApp):
            return app
        frame = frame.f_back  # type: ignore[assignment]
    return None


def of_type(message: Message, message_type: str) -> Message:
    """Return a message without content and with another type, and otherwise the same metadata."""
    make, metadata = Message, copy(message.metadata)  # type: Any, Any
    metadata.__dict__ = {**message.metadata.__dict__, "_message_type": message_type}
    made: Message = make(RecordDict(), metadata=metadata)
    return made


def speaks_http() -> bool:
    """Return whether SuperNodes of this version of Flower speak HTTP, as since 1.41; earlier ones speak gRPC."""
    try:
        return find_spec("flwr.supernode.fleet_http_connection") is not None
    except ModuleNotFoundError:
        return False


def is_on_wire(grid: Grid) -> bool:
    """Return whether a grid reaches SuperNodes that speak HTTP, whose requests `own_traffic` knows."""
    return speaks_http() and type(grid).__name__ == "HttpGrid"


def seconds_since_submission(grid: Grid) -> float:
    """Return how long ago the run of a grid was submitted; 0 if the grid does not know."""
    try:
        submitted = datetime.fromisoformat(grid.run.pending_at)
    except (AttributeError, TypeError, ValueError):
        return 0.0
    return max(0.0, (datetime.now(UTC) - submitted.replace(tzinfo=submitted.tzinfo or UTC)).total_seconds())


def check_programs() -> None:
    """Raise ConfigError if this version of Flower is not the one whose programs `front_door` and `keeper` extend."""
    found = version("flwr")
    if not found.startswith(_PROGRAMS):
        raise ConfigError(
            f"the guarded SuperLink and the resident SuperNode need flwr {_PROGRAMS}x, but {found} is installed; "
            f"install that, or use flower-superlink and flower-supernode with an app that is wrapped in Lean"
        )


def program_part(name: str) -> Any:
    """Return one of PROGRAM_PARTS.

    Raises:
        ConfigError: The installed version of Flower does not have it.
    """
    module, _, attribute = PROGRAM_PARTS[name].partition(":")
    try:
        found = import_module(module)
        return getattr(found, attribute) if attribute else found
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"flwr {version('flwr')} has no {PROGRAM_PARTS[name]}, which the guarded SuperLink and the resident "
            f"SuperNode need; install flwr {_PROGRAMS}x"
        ) from error


def serialized_bytes(content: RecordDict) -> int:
    """Return the bytes of serialized records."""
    from flwr.common.serde import recorddict_to_proto

    return int(recorddict_to_proto(content).ByteSize())


def check_replies(contents: list[RecordDict], weighted_by: str) -> None:
    """Raise Flower's error for metrics that differ in their names or lack the weight."""
    from flwr.serverapp.strategy.strategy_utils import validate_message_reply_consistency

    validate_message_reply_consistency(contents, weighted_by, check_arrayrecord=False)


def message_to_bytes(message: Message) -> bytes:
    """Serialize a message."""
    from flwr.common.serde import message_to_proto

    data: bytes = message_to_proto(message).SerializeToString()
    return data


def message_from_bytes(data: bytes) -> Message:
    """Parse a message."""
    from flwr.common.serde import message_from_proto
    from flwr.proto.message_pb2 import Message as ProtoMessage

    message: Message = message_from_proto(ProtoMessage.FromString(data))
    return message


def context_to_bytes(context: Context) -> bytes:
    """Serialize a context."""
    from flwr.common.serde import context_to_proto

    data: bytes = context_to_proto(context).SerializeToString()
    return data


def context_from_bytes(data: bytes) -> Context:
    """Parse a context."""
    from flwr.common.serde import context_from_proto
    from flwr.proto.message_pb2 import Context as ProtoContext

    context: Context = context_from_proto(ProtoContext.FromString(data))
    return context


def task_id() -> int:
    """Return the id of the task that this process works on."""
    from flwr.supercore.task_identity import TaskIdentity

    number: int = TaskIdentity.task_id
    return number


def set_identity(run: int, node: int, task: int) -> None:
    """Set the run, node and task for which this process makes messages."""
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = run, node, task
