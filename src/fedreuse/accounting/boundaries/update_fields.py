"""The paper's restricted count: numerical fields of updates, and a fixed number of bytes per reuse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from fedreuse.accounting.boundaries.boundary import Boundary, boundaries

if TYPE_CHECKING:
    from fedreuse.accounting.boundaries.boundary import Reference
    from fedreuse.accounting.ledger import LedgerRow

__all__ = ["REUSE_BYTES", "UpdateFields"]

REUSE_BYTES = 16
"""Bytes that the paper counts for a reused client."""


@boundaries.register("update_fields")
@dataclass(frozen=True)
class UpdateFields(Boundary):
    """Numerical fields of client-to-server updates, and 16 bytes per reuse."""

    meaning: ClassVar[str] = "numerical fields of client-to-server updates, 16 bytes per reuse"
    place: ClassVar[int] = 10
    headline: ClassVar[Literal["up", "down", "both"]] = "up"
    per_reuse: ClassVar[int] = REUSE_BYTES

    def charge(self, row: LedgerRow) -> int:
        """Return the bytes of the groups that replies to training contain."""
        return row.group_bytes() if row.direction == "up" and row.purpose == "training" else 0

    def reference(self, dense: Reference) -> tuple[int, int]:
        """Return one dense update up."""
        return 0, dense.dense_bytes
