"""Bytes per event of a run: a fresh update, a reuse, a dropped or lost client, and a whole round."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedreuse.accounting.boundaries.boundary import boundary_of, measured, modelled
from fedreuse.accounting.boundaries.update_fields import REUSE_BYTES
from fedreuse.report.tables import Table, boundary_legend

if TYPE_CHECKING:
    from fedreuse.store.directory import RunDirectory

__all__ = ["Cost", "event_costs", "event_table"]

_NAMES = {"fresh": "fresh update", "reused": "reuse event", "dropped": "dropped client", "lost": "lost client"}
_IDLE, _ROUND = "client that was not selected", "whole round, all clients"
_Bytes = dict[tuple[str, str], float]


@dataclass(frozen=True)
class Cost:
    """Mean bytes of one kind of event by boundary and direction, and the number of such events."""

    event: str
    number: int
    bytes_of: _Bytes


def event_costs(directory: RunDirectory) -> list[Cost]:
    """Return the mean bytes per selected client and round by outcome, all exchanges together, and of a whole round."""
    rows = [row for row in directory.ledger() if row.purpose != "evaluation"]
    levels = [name for name, bound in modelled().items() if bound.counts_every_message]
    levels += [name for name in measured() if any(name in row.fields for row in rows)]
    cells: defaultdict[tuple[int, int], Counter[tuple[str, str]]] = defaultdict(Counter)
    for row in rows:
        for name in levels:
            # measured rows hold what a meter saw, the others the messages: each boundary counts one of the two
            if boundary_of(name).is_measured == row.is_measured:
                cells[row.round_number, row.client][name, row.direction] += boundary_of(name).charge(row)
    outcomes = {(event.round_number, event.client): event.outcome for event in directory.events()}
    keys = [(name, way) for name in levels for way in ("up", "down")]
    kinds = {_NAMES[name]: [key for key, outcome in outcomes.items() if outcome == name] for name in _NAMES}
    kinds[_IDLE] = [key for key in cells if key not in outcomes]
    costs = [Cost(name, len(at), _mean([cells[key] for key in at], keys, len(at))) for name, at in kinds.items() if at]
    num_rounds = len(directory.metrics())
    return [*costs, Cost(_ROUND, num_rounds, _mean(cells.values(), keys, num_rounds))]


def _mean(cells: Iterable[Counter[tuple[str, str]]], keys: Sequence[tuple[str, str]], number: int) -> _Bytes:
    total: Counter[tuple[str, str]] = Counter()
    for cell in cells:
        total.update(cell)
    return {key: total[key] / number for key in keys}


def event_table(directory: RunDirectory) -> Table:
    """Return the bytes per event as a table, with the paper's convention for a reuse beside the counted bytes."""
    costs = event_costs(directory)
    keys = list(costs[-1].bytes_of)
    rows = tuple(
        (
            f"{cost.event} ({cost.number})",
            str(REUSE_BYTES) if cost.event == _NAMES["reused"] else "-",
            *(f"{cost.bytes_of[key]:,.0f}" for key in keys),
        )
        for cost in costs
    )
    headers = ("mean of (number)", "paper\nup", *(f"{name}\n{way}" for name, way in keys))
    names = dict.fromkeys(name for name, _ in keys)
    legend = f"paper: the {REUSE_BYTES} bytes that update_fields charges for a reuse by convention.\n"
    return Table("Bytes per event", headers, rows, legend + boundary_legend(names), is_grouped=True)
