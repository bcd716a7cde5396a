"""The clock of a run: simulated arrival of replies, from bytes, work and devices, and rounds that end early.

The time of a reply depends on the encoded bytes of request and reply, the floating-point operations in between, and the
client's device, never on the machine that runs the simulation. The server itself takes no time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf, isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.core.fleet import Fleet
    from fedreuse.engine.executors.executor import Reply

__all__ = ["Clock"]


@dataclass(frozen=True, eq=False)
class Clock:
    """Simulated time of a federation.

    Args:
        fleet: The devices of the clients.
        deadline: Seconds from the start of a round after which replies are late; None: the server waits for all.
        wait_for: Replies after which an exchange ends; later ones are late. None: all.
        warn: Called with a message about each late client; ignored by default.
    """

    fleet: Fleet
    deadline: float | None = None
    wait_for: int | None = None
    warn: Callable[[str], object] = str  # `str` has no effect
    _named: set[int] = field(default_factory=set)

    def arrival(self, sent: float, request: Envelope, reply: Reply) -> float:
        """Return when a reply arrives whose request is sent at `sent`."""
        device = self.fleet.device(reply.client)
        return device.timing(sent, request.size(), reply.work.flops, reply.envelope.size()).arrived

    def noticed(self, sent: float, client: int, request: Envelope) -> float:
        """Return when the server notices that a request, sent at `sent`, has no reply.

        That is the deadline after the request or, without one, the moment at which the client would have received it.
        """
        if self.deadline is not None:
            return sent + self.deadline
        return self.fleet.device(client).timing(sent, request.size(), 0, 0).received

    def judge(
        self, began: float, now: float, requests: Mapping[int, Envelope], replies: Sequence[Reply]
    ) -> tuple[list[Reply], float]:
        """Mark late replies and return the time at which the exchange ends.

        A lost reply is noticed at the deadline or, without one, as soon as the last other reply arrives.

        Args:
            began: Start of the round.
            now: Start of the exchange.
            requests: Requests by client.
            replies: All replies, in any order.
        """
        waited = [reply for reply in replies if reply.status == "in_time"]
        times = {reply.client: self.arrival(now, requests[reply.client], reply) for reply in waited}
        in_time, end = self.in_time(began, now, times, len(requests))
        for client in sorted(times):
            self.check_late(client, times[client] - began, "the start of the round")
        judged = [
            reply if reply.client in in_time or reply.status != "in_time" else replace(reply, status="late")
            for reply in replies
        ]
        return judged, end

    def in_time(
        self, began: float, now: float, times: Mapping[int, float], num_requests: int
    ) -> tuple[frozenset[int], float]:
        """Return the clients whose replies arrive in time, and the end of the exchange.

        Args:
            began: Start of the round.
            now: Start of the exchange.
            times: Arrival of every reply, by client.
            num_requests: Number of requests, of which some may have no reply.
        """
        limit = inf if self.deadline is None else began + self.deadline
        ordered = sorted((time, client) for client, time in times.items() if isfinite(time) and time <= limit)
        taken = ordered[: self.wait_for]
        is_waiting = len(taken) < min(num_requests, self.wait_for or num_requests)
        end = limit if is_waiting and isfinite(limit) else max((time for time, _ in taken), default=now)
        return frozenset(client for _, client in taken), max(now, end)

    def check_late(self, client: int, seconds: float, since: str) -> bool:
        """Return whether a reply misses the deadline, and warn once about its client.

        Args:
            client: The client's id.
            seconds: Time of the reply since the deadline began to count.
            since: The event from which it counts, for the message.
        """
        is_late = self.deadline is not None and seconds > self.deadline
        if is_late and client not in self._named:
            self._named.add(client)
            self.warn(
                f"client {client} answers {seconds:.6g} s after {since}, later than rounds.deadline "
                f"({self.deadline:g} s); "
                + (f"a deadline of {ceil(seconds)} s would include it" if isfinite(seconds) else "it never answers")
            )
        return is_late
