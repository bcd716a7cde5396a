"""Computation of the clients, summed over ledger rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedreuse.core.local_trainer import Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedreuse.accounting.ledger import LedgerRow

__all__ = ["total_work"]


def total_work(rows: Sequence[LedgerRow]) -> Work:
    """Return the computation of all replies, whether or not the server used them.

    Computation for evaluation, such as fine-tuning before it, is not counted.
    """
    total = Work()
    for row in rows:
        if row.purpose != "evaluation":
            total += row.work
    return total
