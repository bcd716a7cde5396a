"""Requests under way to nodes, without a barrier: each is sent when its node is connected, replies are fetched singly.

A client whose node is gone keeps its request until the node is back or the timeout has passed; then the reply is lost.
While no node is connected, no time counts.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flwr.app import Message
    from flwr.serverapp import Grid

    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.deploy.flower.hello import Hello

__all__ = ["Arrived", "Mailbox"]

_POLL_SECONDS = 0.2
_GREET_SECONDS = 1.0


@dataclass
class _Letter:
    """A request under way; without a message id it waits for its node."""

    request: Envelope
    seconds_left: float
    message_id: str = ""
    node: int = 0


@dataclass(frozen=True, eq=False)
class Arrived:
    """The end of a request: its reply, or None if the reply is lost or the request was sent by an earlier process."""

    client: int
    reply: Message | None = None
    request: Envelope | None = None
    node: int = 0


class Mailbox:
    """Requests under way by client.

    Args:
        grid: Flower's grid.
        hello: Hello with newly connected nodes, and the roster.
        written: Return the Flower message of a client's request to a node.
        timeout_seconds: Time after which the reply to a request is lost.
        log: Called with a line about each lost reply.
    """

    def __init__(
        self,
        grid: Grid,
        hello: Hello,
        written: Callable[[Envelope, int], Message],
        timeout_seconds: float,
        log: Callable[[str], object],
    ) -> None:
        """Start with nothing under way."""
        self._grid, self._hello, self._written = grid, hello, written
        self._timeout, self._log = timeout_seconds, log
        self._letters: dict[int, _Letter] = {}
        self._arrived: deque[Arrived] = deque()
        self._greeting: Thread | None = None
        self._greet_error: BaseException | None = None
        self._greeted, self._checked = 0.0, time.monotonic()

    def post(self, requests: Mapping[int, Envelope]) -> None:
        """Put requests under way."""
        for client in sorted(requests):
            self._letters[client] = _Letter(requests[client], self._timeout)
        self._send()

    def next(self, under_way: Mapping[int, int]) -> Arrived:
        """Wait for the next reply or loss among the requests under way, given as exchanges by client."""
        for client, exchange in sorted(under_way.items()):
            letter = self._letters.get(client)
            if letter is None or letter.request.exchange != exchange:
                self._log(f"client {client}: the request of exchange {exchange} was sent before a restart, and is lost")
                return Arrived(client)
        while not self._arrived:
            self._greet()
            self._send()
            self._fetch()
            self._expire()
            if not self._arrived:
                time.sleep(_POLL_SECONDS)
        arrived = self._arrived.popleft()
        del self._letters[arrived.client]
        return arrived

    def _greet(self) -> None:
        """Say hello to new nodes, in a thread: one that does not answer must not hold up the others."""
        if self._greet_error is not None:
            raise self._greet_error
        is_due = time.monotonic() - self._greeted >= _GREET_SECONDS
        if is_due and (self._greeting is None or not self._greeting.is_alive()):
            self._greeted = time.monotonic()
            self._greeting = Thread(target=self._greet_once, daemon=True)
            self._greeting.start()

    def _greet_once(self) -> None:
        try:
            self._hello.greet()
        except BaseException as error:
            self._greet_error = error

    def _send(self) -> None:
        """Send the requests that wait for a node that is connected."""
        nodes = dict(self._hello.roster.nodes)
        ready = [client for client, letter in self._letters.items() if not letter.message_id and client in nodes]
        if not ready:
            return
        messages = [self._written(self._letters[client].request, nodes[client]) for client in ready]
        for client, message_id in zip(ready, self._grid.push_messages(messages), strict=True):
            self._letters[client].message_id, self._letters[client].node = message_id or "", nodes[client]

    def _fetch(self) -> None:
        """Take the replies that are there; a message has at most one."""
        done = {one.client for one in self._arrived}
        sent = {letter.message_id: client for client, letter in self._letters.items() if letter.message_id}
        for reply in self._grid.pull_messages(list(sent)) if sent else ():
            client = sent.pop(reply.metadata.reply_to_message_id, None)
            if client is not None and client not in done:
                letter = self._letters[client]
                self._arrived.append(Arrived(client, reply, letter.request, letter.node))

    def _expire(self) -> None:
        """Give up requests whose time has passed."""
        now = time.monotonic()
        passed, self._checked = now - self._checked, now
        if not self._hello.roster.nodes:
            return
        done = {one.client for one in self._arrived}
        for client, letter in self._letters.items():
            letter.seconds_left -= passed
            if letter.seconds_left <= 0 and client not in done:
                where = "did not answer" if letter.message_id else "was not connected"
                self._log(f"round {letter.request.round_number}: client {client} {where} within {self._timeout:g} s")
                self._arrived.append(Arrived(client, None, letter.request))
