"""Bytes per round under a boundary, and those of dense FedAvg, from the ledger's rows and events.

A saving compares with dense FedAvg for the same cohorts and the same replies: one dense model down per selected client
and one dense update up per client that was not lost, as far as the boundary counts them. A lost reply is not a saving.
A lost client whose tensors were nevertheless received, late or refused, is charged like any other. Messages for
evaluation by clients count under `with_evaluation` alone; `evaluation_bytes` counts them separately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.accounting.boundaries.boundary import evaluated, measured, modelled
from fedreuse.accounting.columns import counted

if TYPE_CHECKING:
    from fedreuse.accounting.boundaries.boundary import Boundary, Reference
    from fedreuse.accounting.ledger import EventRow, LedgerRow

__all__ = ["Traffic", "evaluation_bytes", "savings", "traffic"]


@dataclass(frozen=True)
class Traffic:
    """Bytes per round under one boundary, in each direction, and those of dense FedAvg for the same replies.

    `num_selected` and `num_lost` count clients, once per round in which they were selected.
    """

    boundary: str
    down: np.ndarray
    up: np.ndarray
    dense_down: np.ndarray
    dense_up: np.ndarray
    num_selected: int = 0
    num_lost: int = 0

    @property
    def lost_share(self) -> float | None:
        """Share of selected clients that were lost; None if no client was selected."""
        return self.num_lost / self.num_selected if self.num_selected else None

    @property
    def has_reference(self) -> bool:
        """True if the boundary has dense bytes to compare with."""
        return bool(self.dense_down.sum() + self.dense_up.sum())

    @property
    def both(self) -> np.ndarray:
        """Bytes per round in both directions."""
        both: np.ndarray = self.down + self.up
        return both

    def used(self, direction: str = "both") -> np.ndarray:
        """Return bytes per round in one direction, or in both."""
        return self._pair(direction)[0]

    def saving(self, direction: str = "both") -> float:
        """Return 1 - bytes / dense bytes, both summed over all rounds; NaN without dense bytes."""
        used, dense = self._pair(direction)
        return float(1 - used.sum() / dense.sum()) if dense.sum() else float("nan")

    def mean_saving(self, direction: str = "both") -> float:
        """Return the mean of the rounds' savings; NaN without dense bytes."""
        used, dense = self._pair(direction)
        has_clients = dense > 0
        return float(np.mean(1 - used[has_clients] / dense[has_clients])) if has_clients.any() else float("nan")

    def _pair(self, direction: str) -> tuple[np.ndarray, np.ndarray]:
        pairs = {
            "up": (self.up, self.dense_up),
            "down": (self.down, self.dense_down),
            "both": (self.both, self.dense_down + self.dense_up),
        }
        return pairs[direction]


def traffic(
    boundary: Boundary,
    rows: Sequence[LedgerRow],
    events: Sequence[EventRow],
    reference: Reference,
    num_rounds: int | None = None,
) -> Traffic:
    """Return bytes per round under a boundary.

    Args:
        boundary: Selects the bytes that are counted.
        rows: Rows of the ledger.
        events: Outcomes of the selected clients.
        reference: Bytes of dense FedAvg per client and round.
        num_rounds: Number of rounds; None: the largest round of an event.
    """
    rounds = num_rounds or max((event.round_number for event in events), default=0)
    return _charged(boundary, counted(rows), _Clients.of(rows, events, rounds), reference)


@dataclass(frozen=True)
class _Clients:
    """Numbers of clients per round, and of all lost ones."""

    selected: np.ndarray
    answered: np.ndarray
    reused: np.ndarray
    num_lost: int

    @classmethod
    def of(cls, rows: Sequence[LedgerRow], events: Sequence[EventRow], rounds: int) -> _Clients:
        """Count the events of every round."""
        lost = {(event.round_number, event.client) for event in events if event.outcome == "lost"}
        # lost clients whose update was nevertheless received are charged, so they have a dense counterpart, too
        heard = (
            {key for row in rows if (key := (row.round_number, row.client)) in lost and _is_update(row)}
            if lost
            else set()
        )
        selected, silent, reused = [0] * rounds, [0] * rounds, [0] * rounds  # lists: entries of arrays change slowly
        num_lost = 0
        for event in events:
            at = event.round_number - 1
            selected[at] += 1
            if event.outcome == "reused":
                reused[at] += 1
            elif event.outcome == "lost":
                num_lost += 1
                silent[at] += (event.round_number, event.client) not in heard
        every = np.array(selected, np.int64)
        return cls(every, every - np.array(silent, np.int64), np.array(reused, np.int64), num_lost)


def _charged(
    boundary: Boundary, groups: Sequence[tuple[LedgerRow, int]], clients: _Clients, reference: Reference
) -> Traffic:
    rounds = len(clients.selected)
    charged = {"down": [0] * rounds, "up": [0] * rounds}
    evaluation = {"down": [0] * rounds, "up": [0] * rounds}
    for row, number in groups:
        if row.is_measured == boundary.is_measured:
            place = evaluation if row.purpose == "evaluation" else charged
            place[row.direction][row.round_number - 1] += number * boundary.charge(row)
    down, up = (np.array(charged[way], np.int64) for way in ("down", "up"))
    more_down, more_up = (np.array(evaluation[way], np.int64) * boundary.counts_evaluation for way in ("down", "up"))
    up += clients.reused * boundary.per_reuse
    if boundary.has_dense_downlink:
        down += clients.selected * reference.dense_bytes
    dense_down, dense_up = boundary.reference(reference)
    return Traffic(
        boundary.name, down + more_down, up + more_up,
        clients.selected * dense_down + more_down, clients.answered * dense_up + more_up,
        num_selected=int(clients.selected.sum()), num_lost=clients.num_lost,
    )  # fmt: skip


def _is_update(row: LedgerRow) -> bool:
    """Return whether the row is a reply to training that contains tensors."""
    return row.direction == "up" and row.purpose == "training" and not row.is_measured and row.group_bytes() > 0


def savings(
    rows: Sequence[LedgerRow], events: Sequence[EventRow], reference: Reference, num_rounds: int | None = None
) -> Mapping[str, Traffic]:
    """Return the traffic under every boundary: measured ones if a meter counted them, evaluation if there was any."""
    groups = counted(rows)
    levels = {level for row, _ in groups if row.is_measured for level in row.fields}
    has_evaluation = any(row.purpose == "evaluation" for row, _ in groups)
    bounds = {**modelled(), **(evaluated() if has_evaluation else {})}
    bounds |= {name: bound for name, bound in measured().items() if name in levels}
    rounds = num_rounds or max((event.round_number for event in events), default=0)
    clients = _Clients.of(rows, events, rounds)
    return {name: _charged(bound, groups, clients, reference) for name, bound in bounds.items()}


def evaluation_bytes(rows: Sequence[LedgerRow]) -> dict[str, dict[str, int]]:
    """Return the bytes of evaluation by clients in each direction, under boundaries that count every message."""
    messages = [row for row in rows if row.purpose == "evaluation" and not row.is_measured]
    return {
        name: {
            f"{direction}_bytes": sum(bound.charge(row) for row in messages if row.direction == direction)
            for direction in ("up", "down")
        }
        for name, bound in modelled().items()
        if bound.counts_every_message
    }
