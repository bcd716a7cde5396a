"""Benchmark of scaling: rounds should not depend on the population, and grow linearly with the cohort.

Every population and every cohort runs in its own process; all take turns round by round.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from fedreuse.lab.bench.interleaving import Command, Facts, ours, take_turns
from fedreuse.lab.bench.population_workload import METHODS
from fedreuse.lab.bench.timing import ratios, shown
from fedreuse.report.axes import new_figure
from fedreuse.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from fedreuse.lab.bench.results import Row

__all__ = ["figure", "run", "tables"]

POPULATIONS = (1_000, 10_000, 100_000, 1_000_000)
COHORTS = (10, 100, 1_000)
_COHORT = 100
_CROWD = 10_000
_LISTS = ("seconds", "cpu_seconds", "fresh", "reused")


def run(
    populations: Sequence[int] = POPULATIONS,
    cohorts: Sequence[int] = COHORTS,
    rounds: int = 5,
    warm_up: int = 2,
    tell: Callable[[str], object] = str,
) -> list[Row]:
    """Return one row per method, population and cohort: lists with one number per round, start, peak memory."""
    rows: list[Row] = []
    for method in METHODS:
        grown = [(population, min(_COHORT, *populations)) for population in populations]
        rows += _play(method, "population", grown, rounds, warm_up, tell)
        crowd = max(_CROWD, *cohorts) if len(populations) > 1 else populations[0]
        rows += _play(method, "cohort", [(crowd, cohort) for cohort in cohorts], rounds, warm_up, tell)
    return rows


def _play(
    method: str,
    varied: str,
    sizes: Iterable[tuple[int, int]],
    rounds: int,
    warm_up: int,
    tell: Callable[[str], object],
) -> list[Row]:
    last = warm_up + rounds + 1  # the last round of a run is evaluated, so it is never timed
    settings = {
        f"{method}, {population:,} clients, {cohort:,} per round": {
            "method": method, "population": population, "cohort": cohort,
        }
        for population, cohort in sizes
    }  # fmt: skip
    commands: dict[str, Command] = {
        name: ours("population_workload", rounds=last, **task) for name, task in settings.items()
    }
    taken = take_turns(commands, rounds, warm_up, tell)
    return [{"varied": varied, **settings[name], **_merged(facts)} for name, facts in taken.items()]


def _merged(rounds: Sequence[Facts]) -> dict[str, Any]:
    """Return lists of the numbers per round, and the last value of the others."""
    lists = {key: [facts[key] for facts in rounds] for key in _LISTS}
    return {**lists, **{key: value for key, value in rounds[-1].items() if key not in _LISTS}}


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return tables of the growth with the population and with the cohort; ratios are to the smallest in a pass."""
    return [_table(rows, "population", "Population"), _table(rows, "cohort", "Cohort")]


def _table(rows: Sequence[Row], varied: str, title: str) -> Table:
    headers = (
        "method", "clients", "per round", "start (s)", "peak memory (MB)", "seconds a round", "processor seconds",
        "seconds, ratio", "processor seconds, ratio",
    )  # fmt: skip
    cells = []
    for row in (row for row in rows if row["varied"] == varied):
        first = next(other for other in rows if other["varied"] == varied and other["method"] == row["method"])
        cells.append(
            (
                row["method"], f"{row['population']:,}", f"{row['cohort']:,}",
                f"{row['start_seconds']:.1f}", f"{row['peak_bytes'] / 1e6:,.0f}",
                shown(row["seconds"], 3), shown(row["cpu_seconds"], 3),
                *(shown(ratios(row[key], first[key]), 2) for key in ("seconds", "cpu_seconds")),
            )
        )  # fmt: skip
    legend = (
        "Median over rounds, with the range; ratios to the first row of the method within a pass. Each row is a "
        "process of its own, with ledger and checkpoints; start and peak memory include imports."
    )
    return Table(title, headers, tuple(cells), legend)


def figure(rows: Sequence[Row], path: Path) -> Path:
    """Draw seconds and memory over the population, from zero up, and seconds over the cohort, on logarithmic axes."""
    drawing = new_figure(12, 4)
    panels = (
        ("population", "cpu_seconds", 1.0, "clients", "processor seconds a round"),
        ("population", "peak_bytes", 1e6, "clients", "peak memory (MB)"),
        ("cohort", "cpu_seconds", 1.0, "clients per round", "processor seconds a round"),
    )
    for axes, (varied, key, unit, horizontal, vertical) in zip(drawing.subplots(1, 3), panels, strict=True):
        for method, marker in zip(dict.fromkeys(row["method"] for row in rows), "osx", strict=False):
            own = [row for row in rows if row["varied"] == varied and row["method"] == method]
            heights = [(median(row[key]) if isinstance(row[key], list) else row[key]) / unit for row in own]
            axes.plot([row[varied] for row in own], heights, marker=marker, label=method)
        axes.set_xscale("log")
        axes.set_xlabel(horizontal)
        axes.set_ylabel(vertical)
        if varied == "cohort":
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0.0, top=axes.get_ylim()[1] * 1.2)
        axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path)
    return path
