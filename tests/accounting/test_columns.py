"""Folded rows: what is shared is stored once, and unfolding gives back every row."""

from __future__ import annotations

from dataclasses import asdict

import msgpack
from hypothesis import given
from hypothesis import strategies as st

from fedreuse.accounting.columns import fold_events, fold_rows, unfold
from fedreuse.accounting.ledger import EventRow, LedgerRow
from fedreuse.core.local_trainer import Work

FIELDS = ({"model:dense": 2600}, {"update:top_k": 520}, {})


def row(client: int, fields: int, seconds: float, steps: int = 2) -> LedgerRow:
    return LedgerRow(
        3, 7, client, "up", "update", "training", "in_time", FIELDS[fields], 0, 40, 560,
        Work(steps, 20, 0, 0, 9, seconds), FIELDS[fields],
    )  # fmt: skip


def test_many_clients_have_one_template() -> None:
    rows = [row(client, 1, client / 8) for client in range(1000)]
    folded = fold_rows(rows)
    assert (len(folded["templates"]), folded["columns"]["client"]) == (1, list(range(1000)))
    stored = msgpack.packb(folded)
    assert len(stored) < 14 * len(rows)  # 3 bytes of the client, 9 of its seconds, 1 of the template
    assert unfold(msgpack.unpackb(stored)) == [asdict(row) for row in rows]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.floats(0, 9), st.integers(0, 2))))
def test_rows_come_back(drawn: list[tuple[int, int, float, int]]) -> None:
    rows = [row(*facts) for facts in drawn]
    assert unfold(msgpack.unpackb(msgpack.packb(fold_rows(rows)))) == [asdict(row) for row in rows]


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["fresh", "lost"]), st.none() | st.integers(0, 3))))
def test_events_come_back(drawn: list[tuple[int, str, int | None]]) -> None:
    events = [EventRow(2, client, outcome, "age", age, None if age else 0.5) for client, outcome, age in drawn]
    assert unfold(msgpack.unpackb(msgpack.packb(fold_events(events)))) == [asdict(event) for event in events]
