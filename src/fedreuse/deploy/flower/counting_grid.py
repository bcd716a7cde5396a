"""Grid that counts the bytes of Flower messages by type and direction, with any strategy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from flwr.serverapp import Grid

from fedreuse.deploy.flower.private import serialized_bytes

if TYPE_CHECKING:
    from flwr.app import Message, RecordDict

__all__ = ["CountingGrid"]


class CountingGrid(Grid):
    """Wrapper of a grid that counts: `strategy.start(CountingGrid(grid), ...)`.

    `num_bytes` and `num_messages` have keys (message type, "down" or "up"). Records are counted as serialized, without
    the overhead of the transport.

    Args:
        inner: The grid to wrap.
    """

    def __init__(self, inner: Grid) -> None:
        """Start at zero."""
        self._inner = inner
        self.num_bytes: dict[tuple[str, str], int] = {}
        self.num_messages: dict[tuple[str, str], int] = {}

    def set_run(self, run: Any) -> None:
        """Set the run of the wrapped grid."""
        self._inner.set_run(run)

    @property
    def run(self) -> Any:
        """Run of the wrapped grid."""
        return self._inner.run

    def create_message(self, content: RecordDict, *args: Any, **kwargs: Any) -> Message:
        """Create a message with the wrapped grid."""
        return self._inner.create_message(content, *args, **kwargs)

    def get_node_ids(self) -> Iterable[int]:
        """Return the ids of connected nodes."""
        return self._inner.get_node_ids()

    def get_nodes(self) -> Iterable[Any]:
        """Return the connected nodes."""
        return self._inner.get_nodes()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Send messages, and count them."""
        return self._inner.push_messages(self._counted(messages, "down"))

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Fetch replies, and count them."""
        return self._counted(self._inner.pull_messages(message_ids), "up")

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Send messages and wait for replies; count both."""
        outgoing = self._counted(messages, "down")
        return self._counted(self._inner.send_and_receive(outgoing, timeout=timeout), "up")

    def _counted(self, messages: Iterable[Message], direction: str) -> list[Message]:
        counted = list(messages)
        for message in counted:
            key = message.metadata.message_type, direction
            size = serialized_bytes(message.content) if message.has_content() else 0
            self.num_bytes[key] = self.num_bytes.get(key, 0) + size
            self.num_messages[key] = self.num_messages.get(key, 0) + 1
        return counted
