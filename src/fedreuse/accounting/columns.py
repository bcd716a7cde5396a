"""Rows of the ledger in the form in which the journal stores them: what many rows share is stored once.

In a round with many clients most messages differ only in the client and in its seconds. Rows are therefore grouped by
everything else (a template), and the rest are columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from fedreuse.accounting.ledger import EventRow, LedgerRow
    from fedreuse.core.local_trainer import Work

__all__ = ["counted", "fold_events", "fold_rows", "unfold"]

R = TypeVar("R")
_SECONDS = "work.seconds"


def fold_rows(rows: Sequence[LedgerRow]) -> dict[str, Any]:
    """Return ledger rows as plain data: templates, and columns of clients and seconds."""
    templates, which = _grouped(rows, lambda row: (_key(row), _counts(row.work)))
    plain = [asdict(replace(row, client=-1, work=replace(row.work, seconds=0.0))) for row in templates]
    columns = {"client": [row.client for row in rows], _SECONDS: [row.work.seconds for row in rows]}
    return {"templates": plain, "which": which, "columns": columns}


def fold_events(events: Sequence[EventRow]) -> dict[str, Any]:
    """Return events as plain data: templates, and columns of clients and scores."""
    templates, which = _grouped(events, lambda row: (row.round_number, row.outcome, row.reason, row.age))
    plain = [asdict(replace(row, client=-1, score=None)) for row in templates]
    columns = {"client": [row.client for row in events], "score": [row.score for row in events]}
    return {"templates": plain, "which": which, "columns": columns}


def unfold(plain: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of `fold_rows` or `fold_events` as plain data, one mapping per row."""
    templates, which, columns = plain["templates"], plain["which"], dict(plain["columns"])
    seconds = columns.pop(_SECONDS, None)
    rows = [dict(templates[at]) for at in which]
    for name, column in columns.items():
        for row, entry in zip(rows, column, strict=True):
            row[name] = entry
    if seconds is not None:
        for row, entry in zip(rows, seconds, strict=True):
            row["work"] = {**row["work"], "seconds": entry}
    return rows


def counted(rows: Sequence[LedgerRow]) -> list[tuple[LedgerRow, int]]:
    """Return one row of each group that differs only in client and work, and the number of rows in the group."""
    templates, which = _grouped(rows, _key)
    numbers = [0] * len(templates)
    for number in which:
        numbers[number] += 1
    return list(zip(templates, numbers, strict=True))


def _grouped(rows: Sequence[R], key_of: Callable[[R], Hashable]) -> tuple[list[R], list[int]]:
    """Return the first row of each group, and the group of every row."""
    numbers: dict[Hashable, int] = {}
    templates: list[R] = []
    which = []
    for row in rows:
        key = key_of(row)
        number = numbers.get(key)
        if number is None:
            number = numbers[key] = len(templates)
            templates.append(row)
        which.append(number)
    return templates, which


def _key(row: LedgerRow) -> Hashable:
    # rows of one exchange share their mappings of bytes, so identity is enough: equal ones are at worst stored twice
    return (
        row.round_number, row.exchange, row.direction, row.kind, row.purpose, row.status, id(row.fields),
        row.value_bytes, row.header_bytes, row.total_bytes, id(row.body),
    )  # fmt: skip


def _counts(work: Work) -> tuple[int, ...]:
    return work.training_steps, work.training_examples, work.proxy_gradients, work.proxy_examples, work.flops
