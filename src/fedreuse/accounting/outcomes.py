"""What became of the selected clients, counted: by outcome, and by outcome and reason."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fedreuse.accounting.ledger import EventRow

__all__ = ["count_outcomes"]


def count_outcomes(events: Iterable[EventRow]) -> dict[str, int]:
    """How often each outcome came about, `fresh`, and how often for which reason, `fresh: no cache`."""
    counts: Counter[str] = Counter()
    for event in events:
        counts[event.outcome] += 1
        if event.reason:
            counts[f"{event.outcome}: {event.reason}"] += 1
    return dict(sorted(counts.items()))
