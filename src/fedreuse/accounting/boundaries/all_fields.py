"""All groups in both directions, for comparing methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.accounting.boundaries.boundary import Boundary, boundaries

if TYPE_CHECKING:
    from fedreuse.accounting.ledger import LedgerRow

__all__ = ["AllFields"]


@boundaries.register("all_fields")
@dataclass(frozen=True)
class AllFields(Boundary):
    """All groups in both directions; numbers count 4 bytes, flags 1 byte."""

    meaning: ClassVar[str] = "every group in both directions, numbers 4 bytes, flags 1 byte"
    place: ClassVar[int] = 30
    counts_every_message: ClassVar[bool] = True

    def charge(self, row: LedgerRow) -> int:
        """Return the bytes of groups and values."""
        return row.group_bytes() + row.value_bytes
