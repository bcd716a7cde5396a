"""The paper's sensitivity: as update_fields, with a dense model down for everybody."""

from __future__ import annotations

from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.accounting.boundaries.symmetric_fields import SymmetricFields
from fedreuse.accounting.ledger import LedgerRow

DENSE = Reference(dense_bytes=1000, request_bytes=1030, reply_bytes=1020)


def row(direction: str, purpose: str = "training", status: str = "in_time", **fields: int) -> LedgerRow:
    named = {name.replace("_", ":"): size for name, size in fields.items()}
    return LedgerRow(1, 1, 0, direction, "update", purpose, status, named, 4, 30, 34 + sum(fields.values()))


def test_as_update_fields_with_a_dense_downlink() -> None:
    bound = SymmetricFields()
    assert bound.charge(row("up", update_pairs=200)) == 200
    assert bound.charge(row("down", model_dense=900)) == 0  # the convention stands for what really went down
    assert bound.has_dense_downlink
    assert (bound.reference(DENSE), bound.per_reuse) == ((1000, 1000), 16)
