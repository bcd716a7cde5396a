"""Bytes of a compressed app by kind and direction, beside those of the same messages without compression."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from fedreuse.deploy.flower.own_traffic import OwnTraffic
from fedreuse.deploy.flower.private import speaks_http

if TYPE_CHECKING:
    from flwr.app import RecordDict

__all__ = ["Traffic", "size_of"]

Way = Literal["down", "up"]
WAYS: tuple[Way, Way] = ("down", "up")
FIRST, AGREEMENT = "first contact", "agreement"
_UNSEEN_SECONDS = 1.5 + 0.75
"""Part of an exchange in which its node polls: half of the 3 s between polls, and until the reply is noticed here."""


def size_of(content: RecordDict) -> int:
    """Return the bytes of a message's records: arrays, values and names, without Flower's metadata."""
    return sum(int(record.count_bytes()) for record in content.values())


@dataclass
class Traffic:
    """Bytes so far.

    Attributes:
        sent: Bytes of the records that crossed, by kind (`train`, `evaluate`, `first contact`, `agreement`, ...) and
            direction.
        dense: Bytes of the records of the same messages as the strategy and the app wrote them.
        counts: Number of messages to nodes, and of those that were sent again.
        own: What Flower adds to the records that crossed.
        own_dense: What Flower adds to the same messages as they were written.
        is_on_wire: Whether messages reach real nodes over HTTP; in a simulation Flower adds nothing.
        waited: Seconds from the submission of the run to the creation of this object, in which its nodes polled.
    """

    sent: Counter[tuple[str, Way]] = field(default_factory=Counter)
    dense: Counter[tuple[str, Way]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    own: OwnTraffic = field(default_factory=OwnTraffic)
    own_dense: OwnTraffic = field(default_factory=OwnTraffic)
    is_on_wire: bool = field(default_factory=speaks_http)
    waited: float = 0.0
    _created: float = field(default_factory=lambda: time.monotonic())
    _began: dict[int, float] = field(default_factory=dict)
    _busy: Counter[int] = field(default_factory=Counter)

    def down(self, node: int, content: RecordDict, written: RecordDict | None) -> None:
        """Count a request to a node; `written` is the message of the strategy, None if it is sent again."""
        # before the first reply: a node that has waited since the run was submitted; later: one that joins
        self._began.setdefault(node, time.monotonic() if self._busy else self._created - self.waited)
        self.own.request(content)
        if written is not None:
            self.own_dense.request(written)

    def worked(self, node: int, seconds: float) -> None:
        """Note the time from a request to its reply, in most of which a node does not poll."""
        self._busy[node] += max(0.0, seconds - _UNSEEN_SECONDS)  # type: ignore[assignment]  # a counter of seconds

    def added_by_flower(self) -> dict[str, dict[str, int]] | None:
        """Return an estimate of the bytes that Flower adds, `sent` and `uncompressed`, and `waiting` as part of both.

        None if nodes do not use HTTP, or are simulated.
        """
        if not self._began or not self.is_on_wire:
            return None
        now = time.monotonic()
        seconds = {node: now - began for node, began in self._began.items()}
        idle = {node: max(0.0, total - self._busy[node]) for node, total in seconds.items()}
        for own in (self.own, self.own_dense):
            own.idle_seconds = idle
        sent, uncompressed = self.own.estimate(seconds), self.own_dense.estimate(seconds)
        return {"sent": sent, "uncompressed": uncompressed, "waiting": self.own.waiting(seconds)}

    def total(self, way: Way) -> int:
        """Return the bytes that crossed in a direction."""
        return sum(size for (_, direction), size in self.sent.items() if direction == way)

    def total_dense(self, way: Way) -> int:
        """Return the bytes without compression in a direction."""
        return sum(size for (_, direction), size in self.dense.items() if direction == way)

    def lines(self) -> list[str]:
        """Return a table for a log."""
        kinds, added = sorted({kind for kind, _ in self.sent}), self.added_by_flower()
        rows = [(kind, self.sent[kind, "down"], self.sent[kind, "up"]) for kind in kinds]
        sent, dense = ({way: count(way) for way in WAYS} for count in (self.total, self.total_dense))
        if added is not None:
            waiting = added["waiting"]
            own = {way: added["sent"][way] - waiting[way] for way in WAYS}
            rows.append(("Flower's requests", own["down"], own["up"]))
            rows.append(("Flower's polling", waiting["down"], waiting["up"]))
            sent = {way: sent[way] + added["sent"][way] for way in WAYS}
            dense = {way: dense[way] + added["uncompressed"][way] for way in WAYS}
        rows += [("all", sent["down"], sent["up"]), ("without fedreuse", dense["down"], dense["up"])]
        shares = "".join(f"{sent[way] / max(1, dense[way]):>15.2%}" for way in WAYS)
        table = [f"{name:<17}{down:>15,}{up:>15,}" for name, down, up in rows]
        return [f"{'bytes':<17}{'down':>15}{'up':>15}", *table, f"{'share':<17}{shares}"]

    def to_plain(self) -> dict[str, Any]:
        """Return the numbers as plain data, for JSON."""

        def table(counter: Counter[tuple[str, Way]]) -> dict[str, dict[str, int]]:
            kinds = sorted({kind for kind, _ in counter})
            return {kind: {way: counter[kind, way] for way in WAYS} for kind in kinds}

        return {
            "sent": table(self.sent),
            "uncompressed": table(self.dense),
            "added_by_flower": self.added_by_flower(),
            "counts": dict(self.counts),
        }
