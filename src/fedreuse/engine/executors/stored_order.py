"""Open executor whose replies arrive in a given order, with clients computed by another executor."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from fedreuse.compression.wire.envelope import Envelope
from fedreuse.core.errors import RunError
from fedreuse.core.local_trainer import Work
from fedreuse.engine.executors.executor import ExecutorWrapper, Reply
from fedreuse.engine.ports import FORGOT, RESYNC

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fedreuse.engine.executors.executor import RunExecutor

__all__ = ["End", "StoredOrder"]


class End(NamedTuple):
    """The end of one request: its client, and `reply`, `lost`, or the kind of a reply without content."""

    client: int
    kind: str


class StoredOrder(ExecutorWrapper):
    """Open executor whose replies arrive in a given order.

    Args:
        inner: Executor that computes the replies.
        ends: The ends of all requests, in order.
    """

    def __init__(self, inner: RunExecutor, ends: Iterable[End]) -> None:
        """Start before the first request."""
        super().__init__(inner)
        self._ends = deque(ends)
        self._requests: dict[int, Envelope] = {}
        self._replies: dict[int, Reply] = {}

    def post(self, requests: Mapping[int, Envelope]) -> None:
        """Compute the replies to requests."""
        self._requests.update(requests)
        self._replies.update((reply.client, reply) for reply in self._inner.exchange(requests))

    def next_reply(self, under_way: Mapping[int, int]) -> tuple[int, Reply | None]:
        """Return the next end in the stored order.

        Raises:
            RunError: The order has no further end, or one of a client without a request.
        """
        if not self._ends or self._ends[0].client not in under_way:
            found = f"client {self._ends[0].client}, which has no request under way" if self._ends else "no further end"
            raise RunError(
                f"the stored order of arrivals names {found}; the run is incomplete, was changed, or is of another "
                "version of fedreuse"
            )
        client, kind = self._ends.popleft()
        request, reply = self._requests.pop(client), self._replies.pop(client, None)
        if kind in (FORGOT, RESYNC):
            reply = Reply(client, Envelope(kind, request.round_number, request.exchange), Work())
        return client, None if kind == "lost" else reply
