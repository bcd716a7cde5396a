"""Serialized envelopes in both directions: end-to-end bytes of a simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.accounting.boundaries.boundary import Boundary, boundaries

if TYPE_CHECKING:
    from fedreuse.accounting.boundaries.boundary import Reference
    from fedreuse.accounting.ledger import LedgerRow

__all__ = ["Messages"]


@boundaries.register("messages")
@dataclass(frozen=True)
class Messages(Boundary):
    """Serialized envelopes in both directions."""

    meaning: ClassVar[str] = "serialized envelopes in both directions"
    place: ClassVar[int] = 40
    counts_every_message: ClassVar[bool] = True
    is_serialized: ClassVar[bool] = True

    def charge(self, row: LedgerRow) -> int:
        """Return the length of the message."""
        return row.total_bytes

    def reference(self, dense: Reference) -> tuple[int, int]:
        """Return the lengths of a dense request and a dense reply, with headers and checksums."""
        return dense.request_bytes, dense.reply_bytes
