"""Warning when the clients' models fall behind the server's."""

from __future__ import annotations

from math import ceil
from statistics import mean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["LagWatch"]

_VISITS = 2
"""Length of a window, in visits of an average client."""
_WINDOWS = 3
"""Distance of the compared windows."""
_GROWTH = 1.5
"""Ratio of their means that is reported; models that train well move away from the initial one, too."""


class LagWatch:
    """Compares the mean lag of the last rounds with that of three windows earlier, once per window.

    Args:
        interval: Mean number of rounds between two visits of a client.
        earlier: The rows of the rounds before a resume.

    Example:
        >>> from fedreuse.runs.lag_watch import LagWatch
        >>> watch = LagWatch(interval=1, earlier=[])
        >>> print(*filter(None, (watch.note({"round": t, "lag": 1.3**t}) for t in range(1, 9))))
        the clients' models fall behind the server's: mean |model - held| grew from 1.5 to 7.2 in 6 rounds ...
    """

    def __init__(self, interval: float, earlier: Iterable[Mapping[str, Any]]) -> None:
        """Take the rounds before a resume into account."""
        self._length = ceil(_VISITS * interval)
        self._lags: list[float] = []
        for row in earlier:
            self.note(row)

    def note(self, row: Mapping[str, Any]) -> str | None:
        """Take a round's row into account; return a warning if the lag has grown."""
        if row.get("lag") is None:
            return None
        self._lags.append(row["lag"])
        length, lags = self._length, self._lags
        if len(lags) % length or len(lags) < (_WINDOWS + 1) * length:
            return None
        now = mean(lags[-length:])
        start = len(lags) - (_WINDOWS + 1) * length
        before = mean(lags[start : start + length])
        if now <= _GROWTH * before:
            return None
        return (
            f"the clients' models fall behind the server's: mean |model - held| grew from {before:.2g} to {now:.2g} in "
            f"{_WINDOWS * length} rounds; raise the bytes of the downlink (method.budget), or lower local.optimizer.lr "
            "or the local epochs"
        )
