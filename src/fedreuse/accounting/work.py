"""Computation of the clients, summed over ledger rows."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from fedreuse.core.local_trainer import NO_WORK, Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedreuse.accounting.ledger import LedgerRow

__all__ = ["total_work"]


def total_work(rows: Sequence[LedgerRow]) -> Work:
    """Return the computation of all replies, whether or not the server used them.

    Computation for evaluation, such as fine-tuning before it, is not counted.
    """
    works = [row.work for row in rows if row.purpose != "evaluation" and row.work is not NO_WORK]
    return Work(*(sum((getattr(work, one.name) for work in works), getattr(NO_WORK, one.name)) for one in fields(Work)))
