"""What a measured deployment cost: bytes per event at every level, and time and bytes to a validation target."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.accounting.boundaries.boundary import boundary_of, measured, modelled
from fedreuse.accounting.boundaries.update_fields import REUSE_BYTES
from fedreuse.report.arrivals import arrivals
from fedreuse.report.statistics.targets import horizon, to_target
from fedreuse.report.tables import Table, boundary_legend, megabytes, score
from fedreuse.report.variants import by_variant
from fedreuse.store.directory import RunDirectory

if TYPE_CHECKING:
    from fedreuse.report.results import Result

__all__ = ["Cost", "Reached", "event_costs", "event_table", "reached", "target_table", "targets_over_seeds"]

_NAMES = {"fresh": "fresh update", "reused": "reuse event", "dropped": "dropped client", "lost": "lost client"}
_IDLE, _ROUND = "client that was not selected", "whole round, all clients"
_Bytes = dict[tuple[str, str], float]


@dataclass(frozen=True)
class Cost:
    """Mean bytes of one kind of event, by boundary and direction, over so many of them."""

    event: str
    number: int
    bytes_of: _Bytes


def event_costs(directory: RunDirectory) -> list[Cost]:
    """What a selected client of each outcome cost in its round, all its exchanges together; and a whole round."""
    rows = [row for row in directory.ledger() if row.purpose != "evaluation"]
    levels = [name for name, bound in modelled().items() if bound.counts_every_message]
    levels += [name for name in measured() if any(name in row.fields for row in rows)]
    cells: defaultdict[tuple[int, int], Counter[tuple[str, str]]] = defaultdict(Counter)
    for row in rows:
        for name in levels:
            if boundary_of(name).is_measured == row.is_measured:
                cells[row.round_number, row.client][name, row.direction] += boundary_of(name).charge(row)
    outcomes = {(event.round_number, event.client): event.outcome for event in directory.events()}
    keys = [(name, way) for name in levels for way in ("up", "down")]
    kinds = {_NAMES[name]: [key for key, found in outcomes.items() if found == name] for name in _NAMES}
    kinds[_IDLE] = [key for key in cells if key not in outcomes]
    costs = [Cost(name, len(at), _mean([cells[one] for one in at], keys, len(at))) for name, at in kinds.items() if at]
    num_rounds = len(directory.metrics())
    return [*costs, Cost(_ROUND, num_rounds, _mean(cells.values(), keys, num_rounds))]


def _mean(cells: Iterable[Counter[tuple[str, str]]], keys: Sequence[tuple[str, str]], number: int) -> _Bytes:
    total: Counter[tuple[str, str]] = Counter()
    for cell in cells:
        total.update(cell)
    return {key: total[key] / number for key in keys}


def event_table(directory: RunDirectory) -> Table:
    """The costs of events as a table, in bytes; the paper's convention for a reuse beside what was measured."""
    costs = event_costs(directory)
    keys = list(costs[-1].bytes_of)
    rows = tuple(
        (f"{cost.event} ({cost.number})", _convention(cost.event), *(f"{cost.bytes_of[key]:,.0f}" for key in keys))
        for cost in costs
    )
    headers = ("mean of (number)", "paper\nup", *(f"{name}\n{way}" for name, way in keys))
    names = dict.fromkeys(name for name, _ in keys)
    legend = f"paper: the {REUSE_BYTES} bytes that update_fields charges for a reuse by convention.\n"
    return Table("Bytes per event", headers, rows, legend + boundary_legend(names), is_grouped=True)


def _convention(event: str) -> str:
    return str(REUSE_BYTES) if event == _NAMES["reused"] else "-"


@dataclass(frozen=True)
class Reached:
    """When a run first evaluated at or above a target: the round, seconds and bytes up to then."""

    round_number: int
    seconds: float
    bytes_of: dict[tuple[str, str], int]


def reached(result: Result, target: float) -> Reached | None:
    """None: not within this run."""
    history = result.history
    place = history.first_at(target)
    if place is None:
        return None
    crossed = {
        (name, way): int((traffic.up if way == "up" else traffic.down)[: place + 1].sum())
        for name, traffic in history.traffic.items()
        for way in ("up", "down")
    }
    return Reached(history.metrics[place]["round"], history.seconds[place], crossed)


def target_table(results: Sequence[Result], target: float) -> Table:
    """One row per run; one that did not get there says no."""
    found = [reached(result, target) for result in results]
    keys = _shown_keys(one.bytes_of for one in found if one is not None)
    rows = tuple(
        (f"{result.variant}, seed {result.seed}", *_cells(one, keys))
        for result, one in zip(results, found, strict=True)
    )
    metric = results[0].metric if results else "score"
    headers = ("run", "reached in\nround", "reached in\nseconds", *(f"{name}\n{way}, MB" for name, way in keys))
    legend = "seconds: wall-clock of all rounds up to then, evaluation included.\n"
    title = f"Up to validation {metric} {score(target, metric)}"
    return Table(
        title, headers, rows, legend + boundary_legend(dict.fromkeys(name for name, _ in keys)), is_grouped=True
    )


def _shown_keys(crossed: Iterable[dict[tuple[str, str], int]]) -> list[tuple[str, str]]:
    """Boundaries and directions in which anything was counted."""
    counted = {key for bytes_of in crossed for key, number in bytes_of.items() if number}
    return [(name, way) for name in {**modelled(), **measured()} for way in ("up", "down") if (name, way) in counted]


def targets_over_seeds(results: Sequence[Result], target: float) -> Table | None:
    """The way to a target over the seeds of each variant; None if none has two.

    Medians come from Kaplan-Meier curves: a run that never arrives is censored at its end, not dropped.
    """
    variants = [variant for variant in by_variant(results) if len(variant.results) > 1]
    if not variants:
        return None
    names = dict.fromkeys(name for variant in variants for one in variant.results for name in one.history.traffic)
    rows = []
    for variant in variants:
        spent = {name: [arrivals(one, target, name, "both") for one in variant.results] for name in names}
        any_boundary = next(iter(spent.values()))
        costs = [[one["rounds"] for one in any_boundary], [one["seconds"] for one in any_boundary]]
        costs += [[one["bytes"] for one in spent[name]] for name in names]
        over = [to_target(those, horizon(those)) for those in costs]
        scales = (1.0, 1.0, *(1e-6 for _ in names))
        told = (_median(one.median, scale) for one, scale in zip(over, scales, strict=True))
        rows.append((variant.name, f"{over[0].num_reached} of {over[0].num_runs}", *told))
    metric = results[0].metric
    headers = (
        "variant",
        "seeds that\narrived",
        "median\nrounds",
        "median\nseconds",
        *(f"{name}\nboth, MB" for name in names),
    )
    legend = (
        "Median over seeds up to the target, from the Kaplan-Meier curve: runs that never arrive are censored, and `-` "
        "says that fewer than half arrived.\n"
    )
    title = f"Up to validation {metric} {score(target, metric)}, over seeds"
    return Table(title, headers, tuple(rows), legend + boundary_legend(names), is_grouped=True)


def _median(number: float | None, scale: float) -> str:
    return "-" if number is None else f"{number * scale:,.4g}"


def _cells(one: Reached | None, keys: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    if one is None:
        return ("no", *("-" for _ in range(len(keys) + 1)))
    return (str(one.round_number), f"{one.seconds:,.1f}", *(megabytes(one.bytes_of.get(key, 0)) for key in keys))
