"""Costs up to a validation target: rounds, bytes, FLOPs and seconds; runs that miss the target are censored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.accounting.boundaries.boundary import measured, modelled
from fedreuse.report.statistics.targets import Arrival, horizon, to_target
from fedreuse.report.tables import Table, boundary_legend, megabytes, score
from fedreuse.report.variants import by_variant

if TYPE_CHECKING:
    from fedreuse.report.results import Result

__all__ = ["COSTS", "Reached", "arrivals", "reached", "target_table", "targets_over_seeds"]

COSTS = ("rounds", "bytes", "flops", "simulated_seconds", "seconds")
"""Costs of a run up to a target; simulated seconds only of runs with devices."""


def arrivals(result: Result, target: float, boundary: str, direction: str) -> dict[str, Arrival]:
    """Return every cost of a run up to its first evaluation at or above the target, or in total if there is none."""
    history = result.history
    index = history.first_at(target)
    end = len(history.metrics) if index is None else index + 1
    traffic = history.traffic[boundary]
    crossed = {"up": traffic.up[:end].sum(), "down": traffic.down[:end].sum()}
    crossed["both"] = crossed["up"] + crossed["down"]
    spent = {
        "rounds": history.metrics[end - 1]["round"] if end else 0,
        "bytes": crossed[direction],
        "flops": history.flops[:end].sum(),
        "seconds": history.seconds[end - 1] if end else 0.0,
    }
    if (simulated := history.simulated_seconds) is not None:
        spent["simulated_seconds"] = simulated[end - 1]
    return {cost: Arrival(float(number), index is not None) for cost, number in spent.items()}


@dataclass(frozen=True)
class Reached:
    """Round of a run's first evaluation at or above a target, and the seconds and bytes up to then."""

    round_number: int
    seconds: float
    simulated_seconds: float | None
    bytes_of: dict[tuple[str, str], int]


def reached(result: Result, target: float) -> Reached | None:
    """Return when a run reached a target; None if it did not."""
    history = result.history
    index = history.first_at(target)
    if index is None:
        return None
    crossed = {
        (name, way): int((traffic.up if way == "up" else traffic.down)[: index + 1].sum())
        for name, traffic in history.traffic.items()
        for way in ("up", "down")
    }
    simulated = history.simulated_seconds
    return Reached(
        history.metrics[index]["round"],
        history.seconds[index],
        None if simulated is None else simulated[index],
        crossed,
    )


def target_table(results: Sequence[Result], target: float) -> Table:
    """Return a table with one row per run; `no` for a run that did not reach the target."""
    found = [reached(result, target) for result in results]
    counted = {key for run in found if run is not None for key, number in run.bytes_of.items() if number}
    keys = [(name, way) for name in {**modelled(), **measured()} for way in ("up", "down") if (name, way) in counted]
    is_timed = any(result.simulated_seconds is not None for result in results)
    rows = tuple(
        (f"{result.variant}, seed {result.seed}", *_cells(run, keys, is_timed))
        for result, run in zip(results, found, strict=True)
    )
    metric = results[0].metric if results else "score"
    timed = ("reached in\nsimulated s",) if is_timed else ()
    headers = ("run", "reached in\nround", *timed, "reached in\nseconds", *(f"{name}\n{way}, MB" for name, way in keys))
    legend = "seconds: wall-clock time of all rounds up to then, including evaluation.\n"
    legend += "simulated s: time on the configured devices, without evaluation.\n" if is_timed else ""
    legend += boundary_legend(dict.fromkeys(name for name, _ in keys))
    return Table(f"Cost to validation {metric} {score(target, metric)}", headers, rows, legend, is_grouped=True)


def _cells(run: Reached | None, keys: Sequence[tuple[str, str]], is_timed: bool) -> tuple[str, ...]:
    if run is None:
        return ("no", *("-" for _ in range(len(keys) + 1 + is_timed)))
    timed = ("-" if run.simulated_seconds is None else f"{run.simulated_seconds:,.1f}",) if is_timed else ()
    sizes = (megabytes(run.bytes_of.get(key, 0)) for key in keys)
    return (str(run.round_number), *timed, f"{run.seconds:,.1f}", *sizes)


def targets_over_seeds(results: Sequence[Result], target: float) -> Table | None:
    """Return the cost to a target over the seeds of each variant; None if no variant has two seeds.

    Medians come from Kaplan-Meier curves: a run that never reaches the target is censored at its end, not dropped.
    """
    variants = [variant for variant in by_variant(results) if len(variant.results) > 1]
    if not variants:
        return None
    names = dict.fromkeys(name for variant in variants for run in variant.results for name in run.history.traffic)
    is_timed = all(run.simulated_seconds is not None for variant in variants for run in variant.results)
    kinds = ("rounds", *(("simulated_seconds",) if is_timed else ()), "seconds")
    scales = (*(1.0 for _ in kinds), *(1e-6 for _ in names))  # bytes in MB
    rows = []
    for variant in variants:
        spent = {name: [arrivals(run, target, name, "both") for run in variant.results] for name in names}
        any_boundary = next(iter(spent.values()))
        costs = [[run[kind] for run in any_boundary] for kind in kinds]
        costs += [[run["bytes"] for run in spent[name]] for name in names]
        over = [to_target(cost, horizon(cost)) for cost in costs]
        medians = (
            "-" if cost.median is None else f"{cost.median * scale:,.4g}"
            for cost, scale in zip(over, scales, strict=True)
        )
        rows.append((variant.name, f"{over[0].num_reached} of {over[0].num_runs}", *medians))
    metric = results[0].metric
    headers = (
        "variant",
        "seeds that\nreached it",
        *(f"median\n{kind.replace('simulated_seconds', 'simulated s')}" for kind in kinds),
        *(f"{name}\nboth, MB" for name in names),
    )
    legend = (
        "Median over seeds of the cost to the target, from the Kaplan-Meier curve: runs that do not reach it are "
        "censored; -: fewer than half reach it.\n"
    )
    title = f"Cost to validation {metric} {score(target, metric)}, over seeds"
    return Table(title, headers, tuple(rows), legend + boundary_legend(names), is_grouped=True)
