"""Requests under way without a barrier: absent nodes, duplicates, losses, restarts, and hellos beside them."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.deploy.flower import mailbox
from fedreuse.deploy.flower.mailbox import Mailbox


class Post:
    """A grid of texts: `replies` holds those that are there, by message id."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.replies: dict[str, Any] = {}

    def push_messages(self, messages: Iterable[str]) -> list[str]:
        self.sent += messages
        return list(self.sent[-len(list(messages)) :])

    def pull_messages(self, message_ids: Iterable[str]) -> list[Any]:
        return [self.replies[message_id] for message_id in message_ids if message_id in self.replies]

    def answer(self, message_id: str) -> None:
        self.replies[message_id] = SimpleNamespace(metadata=SimpleNamespace(reply_to_message_id=message_id))


class Door:
    """Hello with nothing to say; `arrives` are nodes that connect at the next greeting."""

    def __init__(self, nodes: dict[int, int]) -> None:
        self.roster, self.arrives, self.error = SimpleNamespace(nodes=nodes), dict[int, int](), None

    def greet(self) -> None:
        if self.error is not None:
            raise self.error
        self.roster.nodes = {**self.roster.nodes, **self.arrives}


@pytest.fixture
def log() -> list[str]:
    return []


def box(door: Door, log: list[str], seconds: float = 100.0) -> tuple[Mailbox, Post]:
    post = Post()
    written = lambda request, node: f"{request.exchange} to {node}"  # noqa: E731 - a message is a text here
    return Mailbox(post, door, written, seconds, log.append), post  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(mailbox, "_GREET_SECONDS", 0.0)


def requests(*clients: int, exchange: int = 1) -> dict[int, Envelope]:
    return dict.fromkeys(clients, Envelope("train", 1, exchange))


def test_each_reply_ends_one_request_and_copies_end_nothing(log: list[str]) -> None:
    mail, post = box(Door({0: 10, 1: 11}), log)
    mail.post(requests(0, 1))
    assert post.sent == ["1 to 10", "1 to 11"]
    post.answer("1 to 11")
    assert mail.next({0: 1, 1: 1}).client == 1
    mail.post(requests(1, exchange=2))  # the copy of the first reply is still there, and is ignored
    post.answer("1 to 10")
    arrived = mail.next({0: 1, 1: 2})
    assert (arrived.client, arrived.node) == (0, 10)
    post.answer("2 to 11")
    last = mail.next({1: 2})
    assert last.request is not None
    assert last.request.exchange == 2
    assert post.sent == ["1 to 10", "1 to 11", "2 to 11"]


def test_a_request_waits_for_its_node(log: list[str]) -> None:
    door = Door({0: 10})
    mail, post = box(door, log)
    mail.post(requests(0, 1))
    post.answer("1 to 10")
    assert mail.next({0: 1, 1: 1}).client == 0
    door.arrives = {1: 21}
    post.answer("1 to 21")
    assert mail.next({1: 1}).client == 1
    assert post.sent == ["1 to 10", "1 to 21"]


def test_time_passes_only_while_a_node_is_connected(log: list[str]) -> None:
    door = Door({})
    mail, post = box(door, log, seconds=1e-9)
    mail.post(requests(0, 1))
    for _ in range(3):
        mail._expire()  # the timeout is long past, but no node is connected
    assert not mail._arrived
    door.roster.nodes = {1: 11}
    mail._send()
    lost = [mail.next({0: 1, 1: 1}), mail.next({1: 1})]
    assert [(one.client, one.reply) for one in lost] == [(0, None), (1, None)]
    assert log == [
        "round 1: client 0 was not connected within 1e-09 s",
        "round 1: client 1 did not answer within 1e-09 s",
    ]
    assert post.sent == ["1 to 11"]


def test_what_an_earlier_process_sent_is_lost(log: list[str]) -> None:
    mail, _ = box(Door({0: 10}), log)
    assert (mail.next({0: 7}).client, mail.next({0: 7}).reply) == (0, None)
    assert log[0] == "client 0: the request of exchange 7 was sent before a restart, and is lost"


def test_an_error_of_the_roster_file_ends_the_run(log: list[str]) -> None:
    door = Door({})
    door.error = ValueError("roster")  # type: ignore[assignment]
    mail, _ = box(door, log)
    mail.post(requests(0))
    with pytest.raises(ValueError, match="roster"):
        mail.next({0: 1})
