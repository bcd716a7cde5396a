"""What clients computed, summed over ledger rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedreuse.core.local_trainer import Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedreuse.accounting.ledger import LedgerRow

__all__ = ["total_work"]


def total_work(rows: Sequence[LedgerRow]) -> Work:
    """Steps, examples, gradients, FLOPs and seconds of all replies, absorbed or not: the work was done.

    What was done for evaluation (fine-tuning before a look) is not the method's work.
    """
    total = Work()
    for row in rows:
        if row.purpose != "evaluation":
            total += row.work
    return total
