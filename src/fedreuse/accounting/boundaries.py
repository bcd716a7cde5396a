"""Boundaries: pure functions over ledger rows and events that say what counts as communication.

| boundary | counts |
|---|---|
| update_fields | numerical fields of client-to-server updates, 16 bytes per reuse: the paper's restricted number |
| symmetric_fields | the same plus one dense model per selected client: the paper's sensitivity |
| all_fields | every group in both directions, numbers 4 B, flags 1 B |
| messages | serialized envelopes in both directions |
| transport | TCP payload of each node's connections, as a meter saw it |
| interface | whole IP packets of each node, as a meter saw them: headers, acknowledgements, retransmissions too |

The last two are measured: without a meter, as in every simulation, they are absent, not zero; and they have no dense
reference but another measured run.

A saving compares with dense FedAvg for the same cohorts: one dense model down and one dense update up per selected
client, as far as the boundary counts them. What clients are asked for evaluation lies outside every boundary, and is
told apart by `evaluation_bytes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fedreuse.accounting.ledger import EventRow, LedgerRow

__all__ = [
    "BOUNDARIES",
    "MEASURED",
    "REUSE_BYTES",
    "Boundary",
    "Reference",
    "Traffic",
    "evaluation_bytes",
    "savings",
    "traffic",
]

REUSE_BYTES = 16


@dataclass(frozen=True)
class Reference:
    """What one dense FedAvg client costs in a round: field bytes of a model, serialized request and reply."""

    dense_bytes: int
    request_bytes: int
    reply_bytes: int


@dataclass(frozen=True)
class Boundary:
    """A name and what it charges: per row, per reuse event, per selected client, and for the dense reference."""

    name: str
    meaning: str
    charge: Callable[[LedgerRow], int]
    per_reuse: int = 0
    has_dense_downlink: bool = False
    is_measured: bool = False
    reference: Callable[[Reference], tuple[int, int]] = lambda dense: (dense.dense_bytes, dense.dense_bytes)


@dataclass(frozen=True)
class Traffic:
    """Bytes per round under one boundary, in each direction, and those of dense FedAvg for the same cohorts."""

    boundary: str
    down: np.ndarray
    up: np.ndarray
    dense_down: np.ndarray
    dense_up: np.ndarray

    @property
    def has_reference(self) -> bool:
        """Whether there is anything to compare with."""
        return bool(self.dense_down.sum() + self.dense_up.sum())

    @property
    def both(self) -> np.ndarray:
        """Bytes per round, both directions."""
        both: np.ndarray = self.down + self.up
        return both

    def saving(self, direction: str = "both") -> float:
        """1 - bytes / dense bytes, summed over all rounds (cumulative)."""
        used, dense = self._pair(direction)
        return float(1 - used.sum() / dense.sum()) if dense.sum() else float("nan")

    def mean_saving(self, direction: str = "both") -> float:
        """The mean over rounds of each round's own saving."""
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


def _update_fields(row: LedgerRow) -> int:
    return row.group_bytes() if row.direction == "up" and row.purpose == "training" else 0


BOUNDARIES: dict[str, Boundary] = {
    boundary.name: boundary
    for boundary in (
        Boundary(
            "update_fields",
            "numerical fields of client-to-server updates, 16 bytes per reuse",
            _update_fields,
            per_reuse=REUSE_BYTES,
            reference=lambda dense: (0, dense.dense_bytes),
        ),
        Boundary(
            "symmetric_fields",
            "update_fields plus one dense model down per selected client",
            _update_fields,
            per_reuse=REUSE_BYTES,
            has_dense_downlink=True,
        ),
        Boundary(
            "all_fields",
            "every group in both directions, numbers 4 bytes, flags 1 byte",
            lambda row: row.group_bytes() + row.value_bytes,
        ),
        Boundary(
            "messages",
            "serialized envelopes in both directions",
            lambda row: row.total_bytes,
            reference=lambda dense: (dense.request_bytes, dense.reply_bytes),
        ),
    )
}


def _measured(name: str, meaning: str) -> Boundary:
    return Boundary(
        name, meaning, lambda row: row.fields.get(name, 0), is_measured=True, reference=lambda _dense: (0, 0)
    )


MEASURED: dict[str, Boundary] = {
    boundary.name: boundary
    for boundary in (
        _measured("transport", "TCP payload between each node and the server, polls and heartbeats included"),
        _measured("interface", "IP packets of each node: headers, acknowledgements and retransmissions too"),
    )
}


def traffic(
    boundary: Boundary,
    rows: Sequence[LedgerRow],
    events: Sequence[EventRow],
    reference: Reference,
    num_rounds: int | None = None,
) -> Traffic:
    """Bytes per round under a boundary."""
    rounds = num_rounds or max((event.round_number for event in events), default=0)
    down, up = np.zeros(rounds, np.int64), np.zeros(rounds, np.int64)
    for row in rows:
        if row.purpose == "evaluation" or row.is_measured != boundary.is_measured:
            continue
        (down if row.direction == "down" else up)[row.round_number - 1] += boundary.charge(row)
    selected = np.zeros(rounds, np.int64)
    for event in events:
        selected[event.round_number - 1] += 1
        if event.outcome == "reused":
            up[event.round_number - 1] += boundary.per_reuse
    if boundary.has_dense_downlink:
        down += selected * reference.dense_bytes
    dense_down, dense_up = boundary.reference(reference)
    return Traffic(boundary.name, down, up, selected * dense_down, selected * dense_up)


def savings(
    rows: Sequence[LedgerRow], events: Sequence[EventRow], reference: Reference, num_rounds: int | None = None
) -> Mapping[str, Traffic]:
    """Traffic under every boundary, measured ones as far as a meter counted them."""
    counted = {level for row in rows if row.is_measured for level in row.fields}
    drawn = {**BOUNDARIES, **{name: bound for name, bound in MEASURED.items() if name in counted}}
    return {name: traffic(bound, rows, events, reference, num_rounds) for name, bound in drawn.items()}


def evaluation_bytes(rows: Sequence[LedgerRow]) -> dict[str, dict[str, int]]:
    """What evaluation by clients cost in each direction, under the boundaries that look at every message."""
    asked = [row for row in rows if row.purpose == "evaluation" and not row.is_measured]
    return {
        name: {
            f"{direction}_bytes": sum(BOUNDARIES[name].charge(row) for row in asked if row.direction == direction)
            for direction in ("up", "down")
        }
        for name in ("all_fields", "messages")
    }
