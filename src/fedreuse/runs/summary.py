"""What a run came to, as plain data: bytes and savings under every boundary, outcomes, the last evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedreuse.accounting.boundaries import savings

if TYPE_CHECKING:
    from fedreuse.accounting.boundaries import Reference
    from fedreuse.accounting.ledger import Ledger

__all__ = ["communication", "count_events", "last_of"]


def communication(ledger: Ledger, reference: Reference, num_rounds: int) -> dict[str, Any]:
    """Bytes and savings under every boundary, in each direction."""
    table = {}
    for name, traffic in savings(ledger.rows, ledger.events, reference, num_rounds).items():
        has_downlink = bool(traffic.dense_down.sum())
        table[name] = {
            "up_bytes": int(traffic.up.sum()),
            "down_bytes": int(traffic.down.sum()),
            "dense_up_bytes": int(traffic.dense_up.sum()),
            "dense_down_bytes": int(traffic.dense_down.sum()),
            "saving": traffic.saving() if traffic.has_reference else None,
            "mean_round_saving": traffic.mean_saving() if traffic.has_reference else None,
            "up_saving": traffic.saving("up") if traffic.has_reference else None,
            "down_saving": traffic.saving("down") if has_downlink else None,
        }
    return table


def count_events(ledger: Ledger) -> dict[str, int]:
    """How often each outcome came about, in all and by reason."""
    counts: dict[str, int] = {}
    for event in ledger.events:
        for key in (event.outcome, f"{event.outcome}: {event.reason}" if event.reason else None):
            if key is not None:
                counts[key] = counts.get(key, 0) + 1
    return counts


def last_of(metrics: list[dict[str, Any]], name: str) -> float | None:
    """The last value of a metric, where it was taken."""
    return next((row[name] for row in reversed(metrics) if row[name] is not None), None)
