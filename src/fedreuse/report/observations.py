"""Numbers of runs by cell and seed: what statistics over seeds are made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from fedreuse.core.errors import RunDirectoryError

if TYPE_CHECKING:
    from fedreuse.lab.plans.plan import Plan
    from fedreuse.report.results import Result

__all__ = ["Cell", "Unit", "amount_in", "axes_of", "by_cell", "unit_of", "value_of"]

_SEED_AXIS = "seed"
Cell = frozenset[tuple[str, str]]
"""The labels of a run by axis, without the seed."""
Unit = tuple[str, float]
"""What a shown number is called, and what it is multiplied by before."""


def axes_of(results: Sequence[Result]) -> dict[str, list[str]]:
    """The labels of every axis of a study but the seed, in order of appearance."""
    axes: dict[str, list[str]] = {}
    for result in results:
        for axis, label in result.labels.items():
            known = axes.setdefault(axis, [])
            if label not in known:
                known.append(label)
    return {axis: labels for axis, labels in axes.items() if axis != _SEED_AXIS}


def by_cell(results: Sequence[Result]) -> dict[Cell, dict[int, Result]]:
    """The runs of each cell by seed."""
    cells: dict[Cell, dict[int, Result]] = {}
    for result in results:
        cell = frozenset((axis, label) for axis, label in result.labels.items() if axis != _SEED_AXIS)
        cells.setdefault(cell, {})[result.seed] = result
    return cells


def value_of(plan: Plan) -> Callable[[Result], float]:
    """How to read the metric of a plan from a run.

    Raises:
        RunDirectoryError: When a run does not have that number.

    """
    name = f"{plan.metric} score" if plan.metric in ("test", "validation") else plan.metric

    def read(result: Result) -> float:
        found = _read(result, plan)
        if found is None:
            raise RunDirectoryError(
                f"{result.directory} has no {name}{f' ({plan.boundary})' if plan.metric == 'bytes' else ''}, which the "
                "plan compares; choose another metric in the plan, or run it so that there is one"
            )
        return float(found)

    return read


def _read(result: Result, plan: Plan) -> float | None:
    if plan.metric == "bytes":
        saving = result.savings.get(plan.boundary)
        return None if saving is None else float(saving.used(plan.direction))
    readers: Mapping[str, Callable[[Result], float | None]] = {
        "test": lambda one: one.test_score,
        "validation": lambda one: one.validation_score,
        "flops": lambda one: one.work.get("flops"),
        "seconds": lambda one: one.seconds,
    }
    return readers[plan.metric](result)


def unit_of(metric: str, results: Sequence[Result]) -> Unit:
    """How numbers of a metric are shown: accuracy in points (percent), bytes in MB, work in GFLOP."""
    if metric in ("test", "validation"):
        names = sorted({result.metric for result in results})
        return (f"{metric} accuracy, points", 100.0) if names == ["accuracy"] else (f"{metric} {', '.join(names)}", 1.0)
    return {"bytes": ("MB", 1e-6), "flops": ("GFLOP", 1e-9), "seconds": ("s", 1.0), "rounds": ("rounds", 1.0)}[metric]


def amount_in(unit: Unit, metric: str, value: float) -> str:
    """A margin as tables show it: `1 point` for 0.01 of accuracy, `5 MB`; of other scores the number alone."""
    name, factor = unit
    shown = f"{value * factor:g}"
    if metric not in ("test", "validation"):
        return f"{shown} {name}"
    if factor == 1:
        return shown
    return f"{shown} {'point' if shown == '1' else 'points'}"
