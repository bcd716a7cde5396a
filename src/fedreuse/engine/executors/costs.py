"""What playing a client will cost: as measured last time, or guessed from its number of examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Costs"]


class Costs:
    """Seconds by kind of request and client; before the first measurement, examples. They order, nothing else."""

    def __init__(self, examples: Callable[[int], int]) -> None:
        """`examples` of a client."""
        self._examples = examples
        self._measured: dict[tuple[str, int], float] = {}
        self._totals: dict[str, tuple[float, int]] = {}

    def of(self, kind: str, client: int) -> float:
        """Seconds if this was measured, or can be scaled from others of the kind; otherwise examples."""
        if (kind, client) in self._measured:
            return self._measured[kind, client]
        seconds, examples = self._totals.get(kind, (1.0, 1))
        return self._examples(client) * seconds / max(1, examples)

    def note(self, kind: str, client: int, seconds: float) -> None:
        """A measurement."""
        self._measured[kind, client] = seconds
        before = self._totals.get(kind, (0.0, 0))
        self._totals[kind] = before[0] + seconds, before[1] + self._examples(client)
