"""The stored rounds of a run, told again as the events that they were."""

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
"""How columns of the metrics begin that hold scores."""


def replay(directory: RunDirectory, rows: Sequence[Mapping[str, Any]] | None = None) -> Iterator[Evaluated | RoundDone]:
    """What listeners heard, or missed because of a crash, of these rows of the metrics; None: of all stored rounds."""
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
