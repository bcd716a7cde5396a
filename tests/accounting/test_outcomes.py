"""Outcomes are counted once, under one name each."""

from __future__ import annotations

from fedreuse.accounting.ledger import EventRow
from fedreuse.accounting.outcomes import count_outcomes


def test_by_outcome_and_by_reason() -> None:
    events = [EventRow(1, client, *what, None, None) for client, what in enumerate(
        [("fresh", "no cache"), ("fresh", "no cache"), ("fresh", "age"), ("lost", ""), ("reused", "")]
    )]  # fmt: skip
    assert count_outcomes(events) == {"fresh": 3, "fresh: age": 1, "fresh: no cache": 2, "lost": 1, "reused": 1}
    assert count_outcomes([]) == {}
