"""The rounds of one run as arrays, read once: every figure and table over rounds is made from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.accounting.breakdown import breakdown

if TYPE_CHECKING:
    from fedreuse.accounting.breakdown import Share
    from fedreuse.accounting.ledger import EventRow, LedgerRow
    from fedreuse.accounting.traffic import Traffic
    from fedreuse.store.snapshot import Snapshot

__all__ = ["History"]


@dataclass(frozen=True, eq=False)
class History:
    """What happened round by round. The ledger itself, which is large, is not kept.

    Attributes:
        metrics: One row per round.
        events: One row per selected client and round.
        traffic: Bytes per round under every boundary that was counted.
        shares: Bytes of the boundary `messages` by part and round.
        flops: What the clients computed in each round.
    """

    metrics: Sequence[Mapping[str, Any]]
    events: Sequence[EventRow]
    traffic: Mapping[str, Traffic]
    shares: Mapping[Share, np.ndarray]
    flops: np.ndarray

    @classmethod
    def of_nothing(cls) -> History:
        """Before the first round."""
        return cls((), (), {}, {}, np.empty(0, np.int64))

    @classmethod
    def of(cls, snapshot: Snapshot) -> History:
        """The rounds that a snapshot holds."""
        count, rows = len(snapshot.metrics), snapshot.ledger
        if not count:
            return cls.of_nothing()
        return cls(
            snapshot.metrics,
            snapshot.events,
            snapshot.traffic,
            breakdown(rows, count),
            _flops(rows, count),
        )

    @property
    def seconds(self) -> list[float]:
        """Wall-clock seconds from the start to the end of each round, evaluation included."""
        return list(accumulate(row["seconds"] for row in self.metrics))

    def taken(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Rounds and values of one metric, where it was taken."""
        known = [(row["round"], row[name]) for row in self.metrics if row.get(name) is not None]
        rounds, values = zip(*known, strict=True) if known else ((), ())
        return np.array(rounds, np.int64), np.array(values, np.float64)

    def first_at(self, target: float) -> int | None:
        """The place of the first row that was evaluated at or above a validation score; None if there is none."""
        scores = (row["validation_score"] for row in self.metrics)
        return next((at for at, one in enumerate(scores) if one is not None and one >= target), None)


def _flops(rows: Sequence[LedgerRow], num_rounds: int) -> np.ndarray:
    """As `total_work` counts them, by round: what was done for evaluation is not the method's work."""
    flops = np.zeros(num_rounds, np.int64)
    for row in rows:
        if row.purpose != "evaluation":
            flops[row.round_number - 1] += row.work.flops
    return flops
