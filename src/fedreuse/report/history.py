"""Rounds of one run as arrays: the source of every figure and table over rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.accounting.breakdown import breakdown
from fedreuse.core.metrics import score_of

if TYPE_CHECKING:
    from fedreuse.accounting.breakdown import Share
    from fedreuse.accounting.ledger import EventRow, LedgerRow
    from fedreuse.accounting.traffic import Traffic
    from fedreuse.store.snapshot import Snapshot

__all__ = ["History"]


@dataclass(frozen=True, eq=False)
class History:
    """Metrics, events, traffic and work of a run by round. The ledger itself, which is large, is not kept.

    Attributes:
        metrics: One row per round.
        events: One row per selected client and round.
        traffic: Bytes per round under every boundary that was counted.
        shares: Bytes of the boundary `messages` by part and round.
        flops: Floating-point operations of the clients in each round, without evaluation.
    """

    metrics: Sequence[Mapping[str, Any]]
    events: Sequence[EventRow]
    traffic: Mapping[str, Traffic]
    shares: Mapping[Share, np.ndarray]
    flops: np.ndarray

    @classmethod
    def of_nothing(cls) -> History:
        """Return the history before the first round."""
        return cls((), (), {}, {}, np.empty(0, np.int64))

    @classmethod
    def of(cls, snapshot: Snapshot) -> History:
        """Return the rounds of a snapshot."""
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
        """Wall-clock seconds from the start of the run to the end of each round, evaluation included."""
        return list(accumulate(row["seconds"] for row in self.metrics))

    @property
    def simulated_seconds(self) -> list[float] | None:
        """Simulated seconds from the start of the run to the end of each round; None without devices."""
        if not self.metrics or "simulated_seconds" not in self.metrics[0]:
            return None
        return list(accumulate(row["simulated_seconds"] for row in self.metrics))

    def taken(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the rounds in which a metric was evaluated, and its values there.

        `validation_score` is that of the clients' own models where they have them.
        """
        read = score_of if name == "validation_score" else itemgetter(name)
        known = [(row["round"], read(row)) for row in self.metrics if name in row and read(row) is not None]
        rounds, values = zip(*known, strict=True) if known else ((), ())
        return np.array(rounds, np.int64), np.array(values, np.float64)

    def first_at(self, target: float) -> int | None:
        """Return the index of the first row with a validation score at or above the target; None if there is none."""
        scores = (score_of(row) for row in self.metrics)
        return next((at for at, score in enumerate(scores) if score is not None and score >= target), None)


def _flops(rows: Sequence[LedgerRow], num_rounds: int) -> np.ndarray:
    """Return FLOPs by round as `total_work` counts them: evaluation is not part of a method's work."""
    flops = np.zeros(num_rounds, np.int64)
    for row in rows:
        if row.purpose != "evaluation":
            flops[row.round_number - 1] += row.work.flops
    return flops
