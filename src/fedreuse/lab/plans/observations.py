"""Observations of a study: its runs by cell and seed, and the metric that a plan compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from fedreuse.core.errors import RunDirectoryError

if TYPE_CHECKING:
    from fedreuse.lab.plans.plan import Plan
    from fedreuse.report.results import Result

__all__ = ["Cell", "axes_of", "by_cell", "value_of"]

_SEED_AXIS = "seed"
Cell = frozenset[tuple[str, str]]
"""The labels of a run by axis, without the seed."""


def axes_of(results: Sequence[Result]) -> dict[str, list[str]]:
    """Return the labels of every axis of a study except the seed, in order of appearance."""
    axes: dict[str, list[str]] = {}
    for result in results:
        for axis, label in result.labels.items():
            known = axes.setdefault(axis, [])
            if label not in known:
                known.append(label)
    return {axis: labels for axis, labels in axes.items() if axis != _SEED_AXIS}


def by_cell(results: Sequence[Result]) -> dict[Cell, dict[int, Result]]:
    """Return the runs of each cell by seed."""
    cells: dict[Cell, dict[int, Result]] = {}
    for result in results:
        cell = frozenset((axis, label) for axis, label in result.labels.items() if axis != _SEED_AXIS)
        cells.setdefault(cell, {})[result.seed] = result
    return cells


def value_of(plan: Plan) -> Callable[[Result], float]:
    """Return a function that reads the metric of a plan from a run.

    Raises:
        RunDirectoryError: By that function, when a run does not have the number.

    """

    def bytes_used(result: Result) -> float | None:
        saving = result.savings.get(plan.boundary)
        return None if saving is None else float(saving.used(plan.direction))

    readers: Mapping[str, Callable[[Result], float | None]] = {
        "bytes": bytes_used,
        "test": lambda result: result.test_score,
        "validation": lambda result: result.validation_score,
        "flops": lambda result: result.work.get("flops"),
        "seconds": lambda result: result.seconds,
        "simulated_seconds": lambda result: result.simulated_seconds,
    }
    name = f"{plan.metric} score" if plan.metric in ("test", "validation") else plan.metric

    def read(result: Result) -> float:
        value = readers[plan.metric](result)
        if value is None:
            raise RunDirectoryError(
                f"{result.directory} has no {name}{f' ({plan.boundary})' if plan.metric == 'bytes' else ''}, which the "
                "plan compares; choose another metric in the plan, or a run configuration that records it"
            )
        return float(value)

    return read
