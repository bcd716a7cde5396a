"""The paper's restricted number: what clients send up, a reuse counted by convention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from fedreuse.accounting.boundaries.boundary import Boundary, boundaries

if TYPE_CHECKING:
    from fedreuse.accounting.boundaries.boundary import Reference
    from fedreuse.accounting.ledger import LedgerRow

__all__ = ["REUSE_BYTES", "UpdateFields"]

REUSE_BYTES = 16
"""What the paper counts for a client that is reused."""


@boundaries.register("update_fields")
@dataclass(frozen=True)
class UpdateFields(Boundary):
    """Numerical fields of client-to-server updates, 16 bytes per reuse."""

    meaning: ClassVar[str] = "numerical fields of client-to-server updates, 16 bytes per reuse"
    place: ClassVar[int] = 10
    headline: ClassVar[Literal["up", "down", "both"]] = "up"
    per_reuse: ClassVar[int] = REUSE_BYTES

    def charge(self, row: LedgerRow) -> int:
        """Groups of training that go up."""
        return row.group_bytes() if row.direction == "up" and row.purpose == "training" else 0

    def reference(self, dense: Reference) -> tuple[int, int]:
        """One dense update up."""
        return 0, dense.dense_bytes
