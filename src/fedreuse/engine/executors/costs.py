"""Cost estimates of clients: as measured last time, or guessed from the number of examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Costs"]


class Costs:
    """Seconds by kind of request and client; before the first measurement, examples. Used only to order jobs."""

    def __init__(self, examples: Callable[[int], int]) -> None:
        """Start without measurements; `examples` returns a client's number of examples."""
        self._examples = examples
        self._measured: dict[tuple[str, int], float] = {}
        self._totals: dict[str, tuple[float, int]] = {}

    def of(self, kind: str, client: int) -> float:
        """Return measured seconds, or seconds scaled from other clients of the kind, or the number of examples."""
        if (kind, client) in self._measured:
            return self._measured[kind, client]
        seconds, examples = self._totals.get(kind, (1.0, 1))
        return self._examples(client) * seconds / max(1, examples)

    def note(self, kind: str, client: int, seconds: float) -> None:
        """Record a measurement."""
        self._measured[kind, client] = seconds
        before = self._totals.get(kind, (0.0, 0))
        self._totals[kind] = before[0] + seconds, before[1] + self._examples(client)
