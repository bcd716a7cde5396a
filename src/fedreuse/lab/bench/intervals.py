"""Benchmark of intervals and tests over seeds: coverage and false claims in simulated studies without an effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from fedreuse.lab.plans.coverage import DISTRIBUTIONS, simulate
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from fedreuse.lab.bench.results import Row

__all__ = ["NUM_PAIRS", "run", "tables"]

NUM_PAIRS = (5, 10, 20)


def run(repetitions: int, tell: Callable[[str], object] = str) -> list[Row]:
    """Return one row per distribution of the differences and number of seeds."""
    rows: list[Row] = []
    for distribution in DISTRIBUTIONS:
        for num_pairs in NUM_PAIRS:
            tell(f"{distribution} differences, {num_pairs} seeds: {repetitions} studies")
            rows.append(asdict(simulate(distribution, num_pairs, repetitions)))
    return rows


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return a table of rates in percent."""
    shown = ("t", "bca", "t_claims", "sign_flip_claims", "equivalence_claims")
    headers = (
        "differences", "seeds", "t covers", "BCa covers", "t claims\na difference", "sign flips claim\na difference",
        "TOST claims\nequivalence",
    )  # fmt: skip
    drawn = tuple(
        (str(row["distribution"]), str(row["num_pairs"]), *(f"{100 * row[name]:.1f}" for name in shown)) for row in rows
    )
    repetitions = {row["repetitions"] for row in rows}
    legend = (
        "covers: the share of 95 % intervals that hold the true mean, zero; 95 is promised.\n"
        "claims a difference: at 5 %, where there is none; 5 is allowed. Two-sided sign flips cannot reject with five "
        "seeds.\n"
        "claims equivalence: at 5 %, where the true difference lies on the margin; 5 is allowed."
    )
    title = f"In % of {', '.join(f'{number:,}' for number in sorted(repetitions))} simulated studies"
    return [Table(title, headers, drawn, legend)]
