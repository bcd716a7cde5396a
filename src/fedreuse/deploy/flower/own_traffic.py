"""Estimate of the bytes that Flower itself adds between SuperNode and SuperLink, over HTTP and without TLS.

A node asks for messages every three seconds while it has none. A message, its record dictionary and every record and
array in it are objects; each crosses with a request of its own, whose header takes 846 bytes up and 129 down:

request to a node     pull-messages, confirm; a pull-object for each object
reply of a node       push-messages with the ids of the objects; a push-object for each
while idle            pull-messages every 3 s
always                a heartbeat about every 20 s

The sizes were taken from captured traffic of Flower 1.41; a test compares the sum with a relay's count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flwr.app import ArrayRecord, RecordDict

__all__ = ["OwnTraffic", "objects_of"]

_UP, _DOWN = 846, 129
_POLL_SECONDS, _HEARTBEAT_SECONDS = 3.0, 20.0
_START = (4 * _UP + 560, 4 * _DOWN + 430)
"""Bytes of registration, activation and the run's description, up and down; the app itself is not among them."""
_OBJECT = 120
"""Bytes of an object apart from the values that a record counts: type, ids of its parts, metadata."""


def objects_of(content: RecordDict) -> int:
    """Return the number of objects of a message with this content; an array has one more for its values."""
    arrays = sum(2 * len(record) for record in content.values() if isinstance(record, ArrayRecord))
    return 2 + len(content) + arrays


@dataclass
class OwnTraffic:
    """Messages and waiting of all nodes.

    Attributes:
        requests: Number of messages to nodes.
        replies: Number of messages from nodes.
        objects_down: Objects in requests.
        objects_up: Objects in replies.
        idle_seconds: Time without a message, by node.
    """

    requests: int = 0
    replies: int = 0
    objects_down: int = 0
    objects_up: int = 0
    idle_seconds: dict[int, float] = field(default_factory=dict)

    def request(self, content: RecordDict) -> None:
        """Count a message to a node."""
        self.requests += 1
        self.objects_down += objects_of(content)

    def reply(self, content: RecordDict) -> None:
        """Count a message from a node."""
        self.replies += 1
        self.objects_up += objects_of(content)

    def estimate(self, seconds: Mapping[int, float]) -> dict[str, int]:
        """Return the bytes up and down, with `waiting`.

        Args:
            seconds: Time for which each node took part; `idle_seconds` of it without a message.
        """
        waiting = self.waiting(seconds)
        up = (
            self.requests * (_UP + 13 + _UP + 100)
            + self.objects_down * (_UP + 87)
            + self.replies * (_UP + 227)
            + self.objects_up * (68 + _UP - 1 + 120 + _OBJECT)
            + len(seconds) * _START[0]
        )
        down = (
            self.requests * (_DOWN + 144 + _DOWN)
            + self.objects_down * (68 + _DOWN + 6 + _OBJECT)
            + self.replies * (_DOWN + 112)
            + self.objects_up * (66 + _DOWN + 1)
            + len(seconds) * _START[1]
        )
        return {"down": down + waiting["down"], "up": up + waiting["up"]}

    def waiting(self, seconds: Mapping[int, float]) -> dict[str, int]:
        """Return the bytes up and down of polling and heartbeats, which depend on time alone."""
        polls = sum(self.idle_seconds.get(node, 0.0) for node in seconds) / _POLL_SECONDS
        beats = sum(seconds.values()) / _HEARTBEAT_SECONDS
        up = polls * (_UP + 13) + beats * (_UP + 29)
        return {"down": round(polls * _DOWN + beats * (_DOWN + 1)), "up": round(up)}
