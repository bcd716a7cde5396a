"""Whole envelopes: header, values and groups."""

from __future__ import annotations

from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.accounting.boundaries.messages import Messages
from fedreuse.accounting.ledger import LedgerRow

DENSE = Reference(dense_bytes=1000, request_bytes=1030, reply_bytes=1020)


def row(direction: str, purpose: str = "training", status: str = "in_time", **fields: int) -> LedgerRow:
    named = {name.replace("_", ":"): size for name, size in fields.items()}
    return LedgerRow(1, 1, 0, direction, "update", purpose, status, named, 4, 30, 34 + sum(fields.values()))


def test_the_whole_message() -> None:
    bound = Messages()
    assert bound.charge(row("up", update_pairs=200)) == 234
    assert (bound.reference(DENSE), bound.is_serialized, bound.counts_every_message) == ((1030, 1020), True, True)
