"""Flower's grid without Flower's processes: the client app's own functions answer in this process, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.serverapp import Grid

from fedreuse.deploy.flower.client import answer, greet

FIRST_NODE = 1000


class FakeGrid(Grid):
    """Node 1000 + k plays client k, with a disk of its own below `folder`."""

    def __init__(self, folder: Path, flat: dict[str, Any], clients: Iterable[int]) -> None:
        self.contexts = {
            FIRST_NODE + client: Context(
                run_id=1,
                node_id=FIRST_NODE + client,
                node_config={"partition-id": client, "store": str(folder / f"node-{client}")},
                state=RecordDict(),
                run_config=flat,
            )
            for client in clients
        }
        self.spoil: Callable[[Message, Message], Message | None] = lambda request, reply: reply
        self.away: set[int] = set()
        self._replies: dict[str, Message] = {}
        self.asked: list[tuple[int, str]] = []

    def set_run(self, run: Any) -> None: ...

    @property
    def run(self) -> Any: ...

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> list[int]:
        return [node for node in self.contexts if node not in self.away]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        ids = []
        for message in messages:
            node = message.metadata.dst_node_id
            message.metadata.__dict__["_message_id"] = f"{message.object_id}-{node}"
            ids.append(message.metadata.message_id)
            self.asked.append((node, message.metadata.message_type))
            function = greet if message.metadata.message_type == "query" else answer
            try:
                reply = function(message, self.contexts[node])
            except Exception as error:
                reply = Message(Error(0, str(error)), reply_to=message)
            kept = self.spoil(message, reply)
            if kept is not None:
                self._replies[message.metadata.message_id] = kept
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        return [self._replies.pop(message_id) for message_id in message_ids if message_id in self._replies]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        raise NotImplementedError
