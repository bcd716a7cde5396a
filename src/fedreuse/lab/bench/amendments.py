"""Benchmark of plans that are amended after results: false claims in simulated studies without an effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from fedreuse.lab.plans.gaming import STRATEGIES, simulate_gaming
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from fedreuse.lab.bench.results import Row

__all__ = ["run", "tables"]


def run(repetitions: int, tell: Callable[[str], object] = str) -> list[Row]:
    """Return one row per way to amend a plan."""
    rows: list[Row] = []
    for strategy in STRATEGIES:
        tell(f"{strategy}: {repetitions} studies")
        rows.append(asdict(simulate_gaming(strategy, repetitions)))
    return rows


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return a table of rates in percent."""
    drawn = tuple((str(row["strategy"]), f"{100 * row['naive']:.1f}", f"{100 * row['reported']:.1f}") for row in rows)
    repetitions = ", ".join(f"{number:,}" for number in sorted({row["repetitions"] for row in rows}))
    legend = (
        "Paired t-tests at 5 %, Holm; 5 is allowed. last plan alone: the amended plan is tested as if it were the "
        "first. reported: claims that `fedreuse lab confirm` calls shown; exploratory ones are not."
    )
    headers = ("amendment", "last plan alone", "reported")
    return [Table(f"False claims in % of {repetitions} simulated studies", headers, drawn, legend)]
