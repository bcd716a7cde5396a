"""Rows that lie in the journal: all of them as from a list, and only the last in memory."""

from __future__ import annotations

import pytest

from fedreuse.accounting.durable_rows import DurableRows


def test_rows_come_from_the_store_and_from_memory() -> None:
    reads = []

    def read() -> list[int]:
        reads.append(1)
        return [1, 2, 3, 99]  # the store may already hold a row that is written again

    rows = DurableRows(3, read)
    rows.append(4)
    rows.extend([5, 6])
    assert (len(rows), rows[3:], rows[4], rows[-1], rows[4:5]) == (6, [4, 5, 6], 5, 6, [5])
    assert not reads  # none of these needs a stored row
    assert list(rows) == [1, 2, 3, 4, 5, 6] == rows[:]
    assert (rows[0], rows[1:4]) == (1, [2, 3, 4])
    assert rows == [1, 2, 3, 4, 5, 6]
    assert rows != [1]


def test_only_rows_that_are_not_stored_can_be_removed() -> None:
    rows: DurableRows[int] = DurableRows(2, lambda: [1, 2])
    rows.extend([3, 4])
    del rows[3:]
    assert list(rows) == [1, 2, 3]
    with pytest.raises(IndexError, match="not stored"):
        del rows[1:]


def test_nothing_stored_reads_nothing() -> None:
    rows: DurableRows[int] = DurableRows()
    rows.extend([1])
    assert list(rows) == [1]
