"""A given order of arrivals: replies, losses, lost memories, and an order that does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import RunError
from fedreuse.core.local_trainer import Work
from fedreuse.engine.executors.executor import OpenExecutor, Reply
from fedreuse.engine.executors.stored_order import End, StoredOrder


class Echo:
    """An executor whose clients answer with the exchange that they were asked in."""

    def exchange(self, requests: Mapping[int, Envelope]) -> list[Reply]:
        return [Reply(client, Envelope("update", 1, request.exchange), Work()) for client, request in requests.items()]


def executor(*ends: tuple[int, str]) -> StoredOrder:
    inner: Any = Echo()
    return StoredOrder(inner, [End(*end) for end in ends])


def test_replies_come_in_the_given_order() -> None:
    found = executor((2, "reply"), (0, "lost"), (1, "forgot"), (2, "reply"))
    assert isinstance(found, OpenExecutor)
    found.post({client: Envelope("train", 1, 1) for client in (0, 1, 2)})
    client, reply = found.next_reply({0: 1, 1: 1, 2: 1})
    assert client == 2
    assert reply is not None
    assert found.next_reply({0: 1, 1: 1}) == (0, None)
    found.post({2: Envelope("train", 2, 2)})
    client, reply = found.next_reply({1: 1, 2: 2})
    assert client == 1
    assert reply is not None
    assert (reply.envelope.kind, reply.envelope.exchange) == ("forgot", 1)
    client, reply = found.next_reply({2: 2})
    assert reply is not None
    assert (client, reply.envelope.exchange) == (2, 2)


def test_an_order_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(RunError, match=r"^the stored order of arrivals names client 3, which has no request under way"):
        executor((3, "reply")).next_reply({1: 1})
    with pytest.raises(RunError, match=r"names no further end; the run is incomplete"):
        executor().next_reply({1: 1})
