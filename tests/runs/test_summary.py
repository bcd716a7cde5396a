"""What a run came to: sums by hand."""

import pytest

from fedreuse.accounting.boundaries.boundary import Reference
from fedreuse.accounting.ledger import EventRow, Ledger, LedgerRow
from fedreuse.runs.summary import communication, last_of

REFERENCE = Reference(dense_bytes=100, request_bytes=130, reply_bytes=120)


def ledger() -> Ledger:
    """One round, two clients: one trains and sends 20 B of fields, one is reused without contact."""
    rows = [
        LedgerRow(1, 1, 0, "down", "train", "training", "in_time", {"model:dense": 100}, 0, 30, 130),
        LedgerRow(1, 1, 0, "up", "update", "training", "in_time", {"update:bitmap": 20}, 0, 25, 45),
    ]
    events = [EventRow(1, 0, "fresh", "age", 4, None), EventRow(1, 1, "reused", "", 2, None)]
    return Ledger(rows, events)


def test_bytes_and_savings_under_every_boundary():
    table = communication(ledger(), REFERENCE, 1)
    # 20 B of fields and 16 B for the reuse, against 2 x 100 B
    assert table["update_fields"]["up_bytes"] == 36
    assert table["update_fields"]["saving"] == pytest.approx(1 - 36 / 200)
    assert table["update_fields"]["down_saving"] is None
    # 130 B down and 45 B up, against 2 x (130 + 120) B
    assert table["messages"]["saving"] == pytest.approx(1 - 175 / 500)
    assert table["messages"]["down_saving"] == pytest.approx(1 - 130 / 260)
    assert table["all_fields"]["up_bytes"] == 20


def test_the_last_value_that_was_taken():
    assert last_of([{"score": 0.5}, {"score": 0.7}, {"score": None}], "score") == 0.7
    assert last_of([{"score": None}], "score") is None


def test_what_a_meter_saw_has_bytes_but_no_saving():
    metered = ledger()
    metered.rows.append(LedgerRow(1, 1, 0, "up", "", "training", "measured", {"transport": 900}, 0, 0, 0))
    table = communication(metered, REFERENCE, 1)
    assert table["transport"]["up_bytes"] == 900
    assert table["transport"]["saving"] is None
    assert table["transport"]["up_saving"] is None
    assert "interface" not in table
    assert table["messages"] == communication(ledger(), REFERENCE, 1)["messages"]
