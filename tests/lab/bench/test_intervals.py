"""The simulation of intervals as a bench: a row for every case, and a table that says what was promised."""

from __future__ import annotations

import pytest

from fedreuse.lab.bench import intervals


@pytest.mark.slow
def test_every_case_has_a_row_and_a_line() -> None:
    told: list[str] = []
    rows = intervals.run(4, tell=told.append)
    assert len(rows) == len(told) == 9
    (table,) = intervals.tables(rows)
    assert table.title == "In % of 4 simulated studies"
    assert [row[:2] for row in table.rows[:4]] == [("normal", "5"), ("normal", "10"), ("normal", "20"), ("skewed", "5")]
    assert table.rows[0][2] == f"{100 * rows[0]['t']:.1f}"
