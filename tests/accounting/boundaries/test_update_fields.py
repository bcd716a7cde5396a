"""The paper's restricted number: groups that clients send up for training, nothing else."""

from __future__ import annotations

from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.accounting.boundaries.update_fields import REUSE_BYTES, UpdateFields
from fedreuse.accounting.ledger import LedgerRow

DENSE = Reference(dense_bytes=1000, request_bytes=1030, reply_bytes=1020)


def row(direction: str, purpose: str = "training", status: str = "in_time", **fields: int) -> LedgerRow:
    named = {name.replace("_", ":"): size for name, size in fields.items()}
    return LedgerRow(1, 1, 0, direction, "update", purpose, status, named, 4, 30, 34 + sum(fields.values()))


def test_groups_up_alone() -> None:
    bound = UpdateFields()
    assert bound.charge(row("up", update_pairs=200, buffers_dense=30)) == 230
    assert bound.charge(row("down", model_dense=900)) == 0
    assert bound.charge(row("up", "evaluation", update_pairs=200)) == 0
    assert (bound.reference(DENSE), bound.per_reuse, bound.headline) == ((0, 1000), REUSE_BYTES, "up")
