"""TCP payload of each node's connections, as a meter saw it."""

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
    """TCP payload between each node and the server, polls and heartbeats included."""

    meaning: ClassVar[str] = "TCP payload between each node and the server, polls and heartbeats included"
    place: ClassVar[int] = 50
    is_serialized: ClassVar[bool] = True
    is_measured: ClassVar[bool] = True

    def charge(self, row: LedgerRow) -> int:
        """What the meter saw at this level."""
        return row.fields.get("transport", 0)

    def reference(self, dense: Reference) -> tuple[int, int]:
        """None but another measured run."""
        del dense
        return 0, 0
