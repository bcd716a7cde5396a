"""TCP payload of each node's connections, as measured by a meter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.accounting.boundaries.boundary import Boundary, boundaries

if TYPE_CHECKING:
    from fedreuse.accounting.boundaries.boundary import Reference
    from fedreuse.accounting.ledger import LedgerRow

__all__ = ["Transport"]


@boundaries.register("transport")
@dataclass(frozen=True)
class Transport(Boundary):
    """TCP payload between each node and the server, including polls and heartbeats."""

    meaning: ClassVar[str] = "TCP payload between each node and the server, polls and heartbeats included"
    place: ClassVar[int] = 50
    is_serialized: ClassVar[bool] = True
    is_measured: ClassVar[bool] = True

    def charge(self, row: LedgerRow) -> int:
        """Return the measured bytes at this level."""
        return row.fields.get("transport", 0)

    def reference(self, dense: Reference) -> tuple[int, int]:
        """Return 0: the only reference is another measured run."""
        del dense
        return 0, 0
