"""Exchange of messages with nodes: all are sent at once, and replies are fetched until a timeout."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flwr.app import Message
    from flwr.serverapp import Grid

__all__ = ["collect"]

_POLL_SECONDS = 0.2  # Flower's own `send_and_receive` sleeps three seconds at a time


def collect(grid: Grid, messages: Sequence[Message], timeout_seconds: float) -> Iterator[tuple[int, Message]]:
    """Send messages, and yield each reply with the node it was sent to; a message has at most one reply."""
    if not messages:
        return
    nodes = [message.metadata.dst_node_id for message in messages]
    sent = zip(grid.push_messages(messages), nodes, strict=True)
    waiting = {message_id: node for message_id, node in sent if message_id}
    deadline = time.monotonic() + timeout_seconds
    while waiting and time.monotonic() < deadline:
        for reply in grid.pull_messages(list(waiting)):
            node = waiting.pop(reply.metadata.reply_to_message_id, None)
            if node is not None:
                yield node, reply
        if waiting:
            time.sleep(_POLL_SECONDS)
