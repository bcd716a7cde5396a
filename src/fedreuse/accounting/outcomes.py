"""Counts of client outcomes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fedreuse.accounting.ledger import EventRow

__all__ = ["count_outcomes"]


def count_outcomes(events: Iterable[EventRow]) -> dict[str, int]:
    """Return the number of clients by outcome (`fresh`), and by outcome and reason (`fresh: no cache`)."""
    counts: Counter[str] = Counter()
    for event in events:
        counts[event.outcome] += 1
        if event.reason:
            counts[f"{event.outcome}: {event.reason}"] += 1
    return dict(sorted(counts.items()))
