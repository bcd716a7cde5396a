"""Budgets by line: messages as long as each client's line can carry in a common time, within a sum of bytes.

b_i = min(most, max(least, r_i T / 8))              r_i: bits per second of client i
T   = the longest time with sum over messages of b_i <= total

The sum is exact if the schedule says how often each client sends. An asynchronous server decides it while it runs:
then the sum is bounded by the case that the clients with the longest messages send in every round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Messages", "longest_messages"]

_STEPS = 60
"""Bisections of the time."""
_PER_OCTAVE = 16
"""Different lengths between a length and its double: few, so that a federation has few different links."""


@dataclass(frozen=True)
class Messages:
    """Number of messages of one direction in the whole run.

    Args:
        count: All messages together.
        by_client: Messages of each client; None if unknown.
        most_each: Largest number of messages of one client, where `by_client` is None.
    """

    count: int
    by_client: Sequence[int] | None
    most_each: int

    def most_bytes(self, lengths: np.ndarray) -> int:
        """Return the sum of the bytes of all messages, or its largest possible value."""
        if self.by_client is not None:
            return int(np.dot(lengths, np.asarray(self.by_client, np.int64)))
        whole, rest = divmod(self.count, self.most_each)
        longest = np.sort(lengths)[::-1]
        return int(longest[:whole].sum() * self.most_each + longest[whole : whole + 1].sum() * rest)


def longest_messages(
    rates: Sequence[float], messages: Messages, total: float, least: int, most: int
) -> tuple[tuple[int, ...], float]:
    """Return the bytes of each client's messages, and the common time of a transfer in seconds.

    Args:
        rates: Bits per second of each client, above 0.
        messages: How many messages the clients send.
        total: Bytes of all messages; at least those of messages of `least` bytes.
        least: Bytes of the shortest message; slow lines need longer than the common time for it.
        most: Bytes of the longest message.

    Example:
        >>> from fedreuse.methods.line_budgets import Messages, longest_messages
        >>> longest_messages([1e6, 56e3], Messages(20, [10, 10], 10), 200_000, least=100, most=100_000)[0]
        (18432, 1088)
    """
    per_second = np.asarray(rates, np.float64) / 8

    def lengths_at(seconds: float) -> np.ndarray:
        lengths: np.ndarray = np.maximum(least, _coarse(np.clip(per_second * seconds, least, most)))
        return lengths

    low, high = 0.0, float(most / per_second.min())
    if messages.most_bytes(lengths_at(high)) <= total:
        return tuple(map(int, lengths_at(high))), high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if messages.most_bytes(lengths_at(middle)) <= total:
            low = middle
        else:
            high = middle
    return tuple(map(int, lengths_at(low))), low


def _coarse(lengths: np.ndarray) -> np.ndarray:
    """Round lengths down to one of a few per octave."""
    step = np.maximum(1, np.ldexp(1.0, np.frexp(lengths)[1] - 1) / _PER_OCTAVE)
    rounded: np.ndarray = (np.floor(lengths / step) * step).astype(np.int64)
    return rounded
