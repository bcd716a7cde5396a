"""Costs to the validation targets of a plan: every cell over its seeds, and the paired differences of the claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.report.statistics.contrasts import Assessment, assess, paired
from fedreuse.report.statistics.targets import Arrival, ToTarget, horizon, restricted, to_target
from fedreuse.report.target_costs import COSTS, arrivals

if TYPE_CHECKING:
    from fedreuse.lab.plans.claims import Claim
    from fedreuse.lab.plans.observations import Cell
    from fedreuse.lab.plans.plan import Plan
    from fedreuse.report.results import Result

__all__ = ["TargetAnswer", "at_target"]


@dataclass(frozen=True)
class TargetAnswer:
    """One target and one cost: every cell over its seeds, and the paired differences of the plan's claims.

    Differences are of costs cut off at the horizon, which is the same for all runs on the same data and network.
    """

    target: float
    cost: str
    cells: Mapping[Cell, ToTarget]
    differences: Sequence[tuple[Claim, Assessment]]


@dataclass(frozen=True)
class _Costs:
    """One cost of every run, and the horizon of each cell."""

    by_seed: Mapping[Cell, Mapping[int, Arrival]]
    horizons: Mapping[Cell, float]

    def restricted(self, cell: Cell) -> dict[int, float]:
        """Return min(cost, horizon) by seed."""
        runs = self.by_seed[cell]
        return dict(zip(runs, restricted(list(runs.values()), self.horizons[cell]), strict=True))


def at_target(
    target: float, plan: Plan, cells: Mapping[Cell, Mapping[int, Result]], claims: Sequence[Claim]
) -> list[TargetAnswer]:
    """Return the answer for every cost to one target."""
    spent = {
        cell: {seed: arrivals(result, target, plan.boundary, plan.direction) for seed, result in runs.items()}
        for cell, runs in cells.items()
    }
    first_runs = {cell: next(iter(runs.values())) for cell, runs in cells.items()}
    tasks = {cell: (run.dataset, run.network) for cell, run in first_runs.items()}
    answers = []
    known = [costs for runs in spent.values() for costs in runs.values()]
    for cost in (name for name in COSTS if all(name in costs for costs in known)):
        by_seed = {cell: {seed: costs[cost] for seed, costs in runs.items()} for cell, runs in spent.items()}
        answers.append(_answer(target, cost, plan, _Costs(by_seed, _horizons(by_seed, tasks)), claims))
    return answers


def _horizons(by_seed: Mapping[Cell, Mapping[int, Arrival]], tasks: Mapping[Cell, object]) -> dict[Cell, float]:
    """Return the horizon of each cell; cells on the same data and network share one."""
    by_task = {
        task: horizon([run for cell in by_seed if tasks[cell] == task for run in by_seed[cell].values()])
        for task in set(tasks.values())
    }
    return {cell: by_task[task] for cell, task in tasks.items()}


def _answer(target: float, cost: str, plan: Plan, costs: _Costs, claims: Sequence[Claim]) -> TargetAnswer:
    differences = []
    for claim in claims:
        of, against = (costs.restricted(frozenset(cell.items())) for cell in claim.cells)
        differences.append((claim, assess(paired(of, against), alpha=plan.alpha, power=plan.power)))
    over_seeds = {
        cell: to_target(list(runs.values()), costs.horizons[cell], 1 - plan.alpha)
        for cell, runs in costs.by_seed.items()
    }
    return TargetAnswer(target, cost, over_seeds, differences)
