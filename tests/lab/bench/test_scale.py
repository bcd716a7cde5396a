"""Growth tables by hand, the figure, and a real match of two small crowds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedreuse.lab.bench.scale import figure, run, tables


def row(varied: str, population: int, cohort: int, seconds: list[float]) -> dict[str, Any]:
    return {
        "varied": varied, "method": "fed_ef", "population": population, "cohort": cohort, "seconds": seconds,
        "cpu_seconds": seconds, "start_seconds": 1.25, "peak_bytes": 400_000_000, "fresh": [1], "reused": [0],
    }  # fmt: skip


ROWS = [
    row("population", 1000, 100, [1.0, 2.0]),
    row("population", 1_000_000, 100, [1.1, 2.0]),
    row("cohort", 10_000, 10, [0.1, 0.2]),
    row("cohort", 10_000, 1000, [10.0, 18.0]),
]


def test_ratios_by_hand() -> None:
    grown, shared = tables(ROWS)
    # 1.1 / 1.0 and 2.0 / 2.0, each within its pass: the median of 1.1 and 1.0 is 1.05
    assert grown.rows[1][:6] == ("fed_ef", "1,000,000", "100", "1.2", "400", "1.550 (1.100-2.000)")
    assert grown.rows[1][7] == "1.05 (1.00-1.10)"
    # 10 / 0.1 = 100 and 18 / 0.2 = 90
    assert shared.rows[1][8] == "95.00 (90.00-100.00)"


@pytest.mark.slow
def test_the_growth_is_drawn(tmp_path: Path) -> None:
    drawn = figure(ROWS, tmp_path / "images" / "scale.png")
    assert drawn.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("populations", "cohorts"), [((50,), (5,)), ((50, 200), (5, 10))])
def test_a_real_match_of_small_crowds(populations: tuple[int, ...], cohorts: tuple[int, ...]) -> None:
    rows = run(populations, cohorts, rounds=1, warm_up=1)
    assert len(rows) == 3 * (len(populations) + len(cohorts))  # three methods
    assert {tuple(row["fresh"]) for row in rows if row["method"] == "fed_ef" and row["cohort"] == 50} == {(50,)}
    assert all(row["peak_bytes"] > 10_000_000 and row["start_seconds"] > 0 for row in rows)
    assert len(tables(rows)) == 2
