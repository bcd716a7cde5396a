"""Sizes of the extras: every extra has a check, and the stored table has every extra."""

from __future__ import annotations

from pathlib import Path

from benchmarks.extras import CHECKS, check_of
from fedreuse.core.extras import EXTRAS, INCLUDED
from fedreuse.lab.bench.results import read

STORED = Path(__file__).parents[2] / "docs" / "bench" / "extras.json"


def test_every_extra_has_a_check() -> None:
    assert {*CHECKS} <= {"core", *EXTRAS}
    assert check_of("tune") == "fedreuse run digits rounds.count=2 --out {shared}/run-tune"
    assert "fedreuse.deploy" in check_of("deploy")


def test_the_stored_table_has_every_extra_and_larger_ones_are_larger() -> None:
    rows = {row["extra"]: row for row in read(STORED).rows}
    assert {*rows} == {"core", "all", *EXTRAS}
    for extra, row in rows.items():
        assert row["seconds"] > 0
        assert all(row["megabytes"] >= rows[inner]["megabytes"] for inner in ("core", *INCLUDED.get(extra, ())))
