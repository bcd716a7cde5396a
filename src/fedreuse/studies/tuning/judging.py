"""What the runs of one trial come to: objectives, constraints, and the numbers of every cell."""

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
    """Objectives in the order of the space, by how much each constraint is broken, and means by cell."""

    values: tuple[float, ...]
    excess: tuple[float, ...]
    cells: Mapping[str, Mapping[str, float]]


def judge(space: Space, runs: Mapping[str, Sequence[RunDirectory]]) -> Judgement:
    """Judge a trial by its complete runs, given by cell."""
    flat, rule = list(chain.from_iterable(runs.values())), space.rule
    cells = {
        cell: {
            "validation": Measure("validation").of(those),
            "bytes": fmean(bytes_of(one, rule.boundary, rule.direction) for one in those),
        }
        for cell, those in runs.items()
    }
    values = tuple(measure.of(flat) for measure in space.objectives)
    return Judgement(values, tuple(one.excess(flat) for one in space.constraints), cells)
