"""Messages and evaluation by clients, which dense FedAvg would send as well."""

from __future__ import annotations

from fedreuse.accounting.boundaries.boundary import Reference, evaluated, modelled
from fedreuse.accounting.boundaries.with_evaluation import WithEvaluation
from fedreuse.accounting.ledger import EventRow, LedgerRow
from fedreuse.accounting.traffic import savings

DENSE = Reference(dense_bytes=1000, request_bytes=1030, reply_bytes=1020)


def row(direction: str, purpose: str, size: int) -> LedgerRow:
    return LedgerRow(1, 1, 0, direction, "update", purpose, "in_time", {}, 0, 30, size)


def test_evaluation_counts_on_both_sides_of_the_saving() -> None:
    # training: 100 down and 50 up instead of 1,030 and 1,020; evaluation: 1,040 down and 40 up in any case
    rows = [row("down", "training", 100), row("up", "training", 50)]
    events = [EventRow(1, 0, "fresh", "", None, None)]
    assert "with_evaluation" not in savings(rows, events, DENSE)
    rows += [row("down", "evaluation", 1040), row("up", "evaluation", 40)]
    found = savings(rows, events, DENSE)
    both, messages = found["with_evaluation"], found["messages"]
    assert (both.down.tolist(), both.up.tolist()) == ([1140], [90])
    assert (both.dense_down.tolist(), both.dense_up.tolist()) == ([2070], [1060])
    assert (messages.down.tolist(), messages.dense_down.tolist()) == ([100], [1030])
    assert both.saving() == 1 - 1230 / 3130


def test_it_is_a_boundary_of_some_runs_only() -> None:
    assert list(evaluated()) == ["with_evaluation"]
    assert "with_evaluation" not in modelled()
    assert WithEvaluation().reference(DENSE) == (1030, 1020)
