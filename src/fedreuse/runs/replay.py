"""Stored rounds of a run as the events that listeners receive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.outcomes import count_outcomes
from fedreuse.accounting.work import total_work
from fedreuse.core.events import Evaluated, RoundDone

if TYPE_CHECKING:
    from fedreuse.accounting.ledger import EventRow, LedgerRow
    from fedreuse.store.directory import RunDirectory

__all__ = ["replay"]

_SCORES = ("validation_", "personal_")
"""Prefixes of the columns with scores."""


def replay(directory: RunDirectory, rows: Sequence[Mapping[str, Any]] | None = None) -> Iterator[Evaluated | RoundDone]:
    """Yield the events of stored rounds again; `rows` are rows of the metrics (None: all rounds)."""
    rows = directory.metrics() if rows is None else rows
    if not rows:
        return
    events: dict[int, list[EventRow]] = defaultdict(list)
    for event in directory.events():
        events[event.round_number].append(event)
    ledger: dict[int, list[LedgerRow]] = defaultdict(list)
    for entry in directory.ledger():
        ledger[entry.round_number].append(entry)
    for row in rows:
        number = row["round"]
        scores = {name: value for name, value in row.items() if name.startswith(_SCORES) and value is not None}
        if scores:
            yield Evaluated(number, scores)
        yield RoundDone(row, count_outcomes(events[number]), total_work(ledger[number]))
