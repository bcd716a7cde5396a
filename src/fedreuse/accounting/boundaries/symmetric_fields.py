"""The paper's sensitivity analysis: `update_fields` plus one dense model down per selected client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.accounting.boundaries.boundary import Boundary, boundaries
from fedreuse.accounting.boundaries.update_fields import REUSE_BYTES, UpdateFields

if TYPE_CHECKING:
    from fedreuse.accounting.ledger import LedgerRow

__all__ = ["SymmetricFields"]


@boundaries.register("symmetric_fields")
@dataclass(frozen=True)
class SymmetricFields(Boundary):
    """The bytes of `update_fields`, plus one dense model down per selected client."""

    meaning: ClassVar[str] = "update_fields plus one dense model down per selected client"
    place: ClassVar[int] = 20
    per_reuse: ClassVar[int] = REUSE_BYTES
    has_dense_downlink: ClassVar[bool] = True

    def charge(self, row: LedgerRow) -> int:
        """Return the bytes under `update_fields`."""
        return UpdateFields().charge(row)
