"""Every group and value, in both directions."""

from __future__ import annotations

from fedreuse.accounting.boundaries.all_fields import AllFields
from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.accounting.ledger import LedgerRow

DENSE = Reference(dense_bytes=1000, request_bytes=1030, reply_bytes=1020)


def row(direction: str, purpose: str = "training", status: str = "in_time", **fields: int) -> LedgerRow:
    named = {name.replace("_", ":"): size for name, size in fields.items()}
    return LedgerRow(1, 1, 0, direction, "update", purpose, status, named, 4, 30, 34 + sum(fields.values()))


def test_groups_and_values() -> None:
    bound = AllFields()
    assert bound.charge(row("up", update_pairs=200)) == 204
    assert bound.charge(row("down", model_dense=900)) == 904
    assert (bound.reference(DENSE), bound.per_reuse, bound.counts_every_message) == ((1000, 1000), 0, True)
