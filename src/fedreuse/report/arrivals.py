"""What runs spent up to a validation target: rounds, bytes, FLOPs and seconds; of those that never got there, all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.report.statistics.contrasts import Assessment, assess, paired
from fedreuse.report.statistics.targets import Arrival, ToTarget, horizon, restricted, to_target

if TYPE_CHECKING:
    from fedreuse.lab.plans.claims import Claim
    from fedreuse.lab.plans.plan import Plan
    from fedreuse.report.observations import Cell
    from fedreuse.report.results import Result

__all__ = ["COSTS", "TargetAnswer", "arrivals", "at_target"]

COSTS = ("rounds", "bytes", "flops", "seconds")


@dataclass(frozen=True)
class TargetAnswer:
    """One target and one cost: every cell over its seeds, and the paired differences of the plan's claims.

    Differences are of costs cut off at the horizon, which is the same for all runs on the same data and network.
    """

    target: float
    cost: str
    cells: Mapping[Cell, ToTarget]
    differences: Sequence[tuple[Claim, Assessment]]


def arrivals(result: Result, target: float, boundary: str, direction: str) -> dict[str, Arrival]:
    """What a run had spent when it was first evaluated at or above the target, or in all."""
    history = result.history
    place = history.first_at(target)
    end = len(history.metrics) if place is None else place + 1
    traffic = history.traffic[boundary]
    crossed = {"up": traffic.up[:end].sum(), "down": traffic.down[:end].sum()}
    crossed["both"] = crossed["up"] + crossed["down"]
    spent = {
        "rounds": history.metrics[end - 1]["round"] if end else 0,
        "bytes": crossed[direction],
        "flops": history.flops[:end].sum(),
        "seconds": history.seconds[end - 1] if end else 0.0,
    }
    return {cost: Arrival(float(number), place is not None) for cost, number in spent.items()}


def at_target(
    target: float, plan: Plan, cells: Mapping[Cell, Mapping[int, Result]], claims: Sequence[Claim]
) -> list[TargetAnswer]:
    """Every cost to one target."""
    found = {
        cell: {seed: arrivals(result, target, plan.boundary, plan.direction) for seed, result in runs.items()}
        for cell, runs in cells.items()
    }
    tasks = {cell: _task(runs) for cell, runs in cells.items()}
    return [_answer(target, cost, plan, _Costs.of(cost, found, tasks), claims) for cost in COSTS]


@dataclass(frozen=True)
class _Costs:
    """One cost of every run, and where it is cut off in each cell."""

    by_seed: Mapping[Cell, Mapping[int, Arrival]]
    limits: Mapping[Cell, float]

    @classmethod
    def of(
        cls, cost: str, found: Mapping[Cell, Mapping[int, Mapping[str, Arrival]]], tasks: Mapping[Cell, object]
    ) -> _Costs:
        by_seed = {cell: {seed: costs[cost] for seed, costs in runs.items()} for cell, runs in found.items()}
        limits = {
            task: horizon([one for cell in by_seed if tasks[cell] == task for one in by_seed[cell].values()])
            for task in set(tasks.values())
        }
        return cls(by_seed, {cell: limits[task] for cell, task in tasks.items()})

    def cut(self, cell: Cell) -> dict[int, float]:
        """min(cost, horizon) by seed."""
        runs = self.by_seed[cell]
        return dict(zip(runs, restricted(list(runs.values()), self.limits[cell]), strict=True))


def _task(runs: Mapping[int, Result]) -> tuple[str, str]:
    """Runs on the same data and network share a horizon."""
    one = next(iter(runs.values()))
    return one.dataset, one.network


def _answer(target: float, cost: str, plan: Plan, costs: _Costs, claims: Sequence[Claim]) -> TargetAnswer:
    differences = []
    for claim in claims:
        of, against = (costs.cut(frozenset(cell.items())) for cell in claim.cells)
        differences.append((claim, assess(paired(of, against), alpha=plan.alpha, power=plan.power)))
    over_seeds = {
        cell: to_target(list(runs.values()), costs.limits[cell], 1 - plan.alpha) for cell, runs in costs.by_seed.items()
    }
    return TargetAnswer(target, cost, over_seeds, differences)
