"""IP packets of each node, as measured by a meter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedreuse.accounting.boundaries.boundary import Boundary, boundaries

if TYPE_CHECKING:
    from fedreuse.accounting.boundaries.boundary import Reference
    from fedreuse.accounting.ledger import LedgerRow

__all__ = ["Interface"]


@boundaries.register("interface")
@dataclass(frozen=True)
class Interface(Boundary):
    """IP packets of each node, including headers, acknowledgements and retransmissions."""

    meaning: ClassVar[str] = "IP packets of each node: headers, acknowledgements and retransmissions too"
    place: ClassVar[int] = 60
    is_serialized: ClassVar[bool] = True
    is_measured: ClassVar[bool] = True

    def charge(self, row: LedgerRow) -> int:
        """Return the measured bytes at this level."""
        return row.fields.get("interface", 0)

    def reference(self, dense: Reference) -> tuple[int, int]:
        """Return 0: the only reference is another measured run."""
        del dense
        return 0, 0
