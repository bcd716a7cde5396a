"""Evaluation of a trial by its runs: objectives, constraints, and means of every cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING

from fedreuse.studies.tuning.measures import Measure, bytes_of

if TYPE_CHECKING:
    from fedreuse.store.directory import RunDirectory
    from fedreuse.studies.tuning.space import Space

__all__ = ["Judgement", "judge"]


@dataclass(frozen=True)
class Judgement:
    """Objectives in the order of the space, the violation of each constraint (above 0: violated), and means by cell."""

    values: tuple[float, ...]
    excess: tuple[float, ...]
    cells: Mapping[str, Mapping[str, float]]


def judge(space: Space, runs: Mapping[str, Sequence[RunDirectory]]) -> Judgement:
    """Evaluate a trial from its complete runs, given by cell."""
    flat, rule = list(chain.from_iterable(runs.values())), space.rule
    cells = {
        cell: {
            "validation": Measure("validation").of(of_cell),
            "bytes": fmean(bytes_of(run, rule.boundary, rule.direction) for run in of_cell),
        }
        for cell, of_cell in runs.items()
    }
    values = tuple(measure.of(flat) for measure in space.objectives)
    return Judgement(values, tuple(constraint.excess(flat) for constraint in space.constraints), cells)
