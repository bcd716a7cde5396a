"""Messages to nodes and back: each reply with the node that was asked, until the time is over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from flwr.app import Message, RecordDict

from fedreuse.deploy.flower import post


class SlowGrid:
    """Answers one message per look, the last one never; a message to node 0 cannot be sent."""

    def __init__(self) -> None:
        self.left: list[Message] = []

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        for message in messages:
            message.metadata.__dict__["_message_id"] = str(message.metadata.dst_node_id or "")
            self.left.append(message)
        return [message.metadata.message_id for message in messages]

    def pull_messages(self, message_ids: Any) -> list[Message]:
        ready = [message for message in self.left if message.metadata.message_id in message_ids]
        replies = [Message(RecordDict(), reply_to=message) for message in ready[:1]]
        return replies * 2  # a transport that says everything twice


def message(node: int) -> Message:
    return Message(RecordDict(), node, "train")


def test_each_reply_once_with_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post, "_POLL_SECONDS", 0.0)
    found = list(post.collect(SlowGrid(), [message(5), message(0), message(7)], 5.0))  # type: ignore[arg-type]
    assert [node for node, _ in found] == [5, 7]
    assert [reply.metadata.src_node_id for _, reply in found] == [5, 7]


def test_nobody_is_waited_for_without_end() -> None:
    class Silent(SlowGrid):
        def pull_messages(self, message_ids: Any) -> list[Message]:
            return []

    assert list(post.collect(Silent(), [message(5)], 0.05)) == []  # type: ignore[arg-type]
    assert list(post.collect(Silent(), [], 1e9)) == []  # type: ignore[arg-type]
