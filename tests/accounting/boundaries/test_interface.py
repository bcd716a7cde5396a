"""What a meter saw at the level interface; there is no dense reference."""

from __future__ import annotations

from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.accounting.boundaries.interface import Interface
from fedreuse.accounting.ledger import LedgerRow

DENSE = Reference(dense_bytes=1000, request_bytes=1030, reply_bytes=1020)


def row(direction: str, purpose: str = "training", status: str = "in_time", **fields: int) -> LedgerRow:
    named = {name.replace("_", ":"): size for name, size in fields.items()}
    return LedgerRow(1, 1, 0, direction, "update", purpose, status, named, 4, 30, 34 + sum(fields.values()))


def test_what_the_meter_saw() -> None:
    bound = Interface()
    assert bound.charge(row("up", status="measured", interface=700, other=5)) == 700
    assert bound.charge(row("up", status="measured", other=5)) == 0
    assert (bound.reference(DENSE), bound.is_measured) == ((0, 0), True)
