"""The simulation of amendments as a bench: a row and a line for every strategy."""

from __future__ import annotations

from fedreuse.lab.bench import amendments
from fedreuse.lab.plans.gaming import STRATEGIES


def test_every_strategy_has_a_row_and_a_line() -> None:
    told: list[str] = []
    rows = amendments.run(3, tell=told.append)
    assert [row["strategy"] for row in rows] == list(STRATEGIES)
    assert len(told) == len(rows)
    (table,) = amendments.tables(rows)
    assert table.title == "False claims in % of 3 simulated studies"
    assert table.rows[0] == ("one plan", f"{100 * rows[0]['naive']:.1f}", f"{100 * rows[0]['reported']:.1f}")
