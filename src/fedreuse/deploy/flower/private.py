"""The only place that uses what Flower does not document; `tests/deploy/flower/test_private.py` names what broke."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from flwr.app import Error, Message, RecordDict

__all__ = ["remade", "speaks_http"]


def remade(reply: Message, content: RecordDict | Error, message_id: str) -> Message:
    """Return a reply with other content, or an error, that answers the message with an id.

    Flower's own constructor makes replies only from the request, with the id of that request; a request that was sent
    twice has two, and its sender knows the first.
    """
    make: Any = Message
    reply.metadata.__dict__["_reply_to_message_id"] = message_id
    made: Message = make(content, metadata=reply.metadata)
    return made


def speaks_http() -> bool:
    """Return whether SuperNodes of this version of Flower speak HTTP, as since 1.41; earlier ones speak gRPC."""
    try:
        return find_spec("flwr.supernode.fleet_http_connection") is not None
    except ModuleNotFoundError:
        return False
