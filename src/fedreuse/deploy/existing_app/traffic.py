"""Bytes of a compressed app by kind and direction, beside those of the same messages without compression."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from flwr.app import RecordDict

__all__ = ["Traffic", "size_of"]

Way = Literal["down", "up"]
WAYS: tuple[Way, Way] = ("down", "up")
FIRST, AGREEMENT = "first contact", "agreement"


def size_of(content: RecordDict) -> int:
    """Return the bytes of a message's records: arrays, values and names, without Flower's metadata."""
    return sum(int(record.count_bytes()) for record in content.values())


@dataclass
class Traffic:
    """Bytes of records so far.

    Attributes:
        sent: Bytes that crossed, by kind (`train`, `evaluate`, `first contact`, `agreement`, ...) and direction.
        dense: Bytes of the same messages as the strategy and the app wrote them.
        messages: Number of messages by direction, with those that were sent again.
        objects: Number of objects in them by direction; Flower sends each with a request of its own.
        dense_objects: Objects of the messages as the strategy and the app wrote them.
    """

    sent: Counter[tuple[str, Way]] = field(default_factory=Counter)
    dense: Counter[tuple[str, Way]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    def total(self, way: Way) -> int:
        """Return the bytes that crossed in a direction."""
        return sum(size for (_, direction), size in self.sent.items() if direction == way)

    def total_dense(self, way: Way) -> int:
        """Return the bytes without compression in a direction."""
        return sum(size for (_, direction), size in self.dense.items() if direction == way)

    def lines(self) -> list[str]:
        """Return a table for a log."""
        kinds = sorted({kind for kind, _ in self.sent})
        rows = [f"{kind:<15}{self.sent[kind, 'down']:>15,}{self.sent[kind, 'up']:>15,}" for kind in kinds]
        total, dense = (
            f"{name:<15}{down:>15,}{up:>15,}"
            for name, down, up in (
                ("all", self.total("down"), self.total("up")),
                ("uncompressed", self.total_dense("down"), self.total_dense("up")),
            )
        )
        shares = "".join(f"{self.total(way) / max(1, self.total_dense(way)):>15.2%}" for way in WAYS)
        return [f"{'bytes':<15}{'down':>15}{'up':>15}", *rows, total, dense, f"{'share':<15}{shares}"]

    def to_plain(self) -> dict[str, Any]:
        """Return the numbers as plain data, for JSON."""

        def table(counter: Counter[tuple[str, Way]]) -> dict[str, dict[str, int]]:
            kinds = sorted({kind for kind, _ in counter})
            return {kind: {way: counter[kind, way] for way in WAYS} for kind in kinds}

        return {"sent": table(self.sent), "uncompressed": table(self.dense), "counts": dict(self.counts)}
