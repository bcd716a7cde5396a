"""Multiple tests: p-values adjusted so that the probability of any false claim is at most alpha."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

__all__ = ["Correction", "adjusted"]

Correction = Literal["holm", "bonferroni", "none"]


def adjusted(p_values: Sequence[float | None], correction: Correction = "holm") -> list[float | None]:
    """Return adjusted p-values in the given order, each to be compared with alpha.

    Args:
        p_values: One per contrast. None (no test was possible) counts as 1, so that it does not weaken the correction
            of the others, and stays None.
        correction: `holm` (Holm, 1979), `bonferroni`, or `none`.

    Example:
        >>> [round(p, 3) for p in adjusted([0.01, 0.04, 0.03, 0.005])]
        [0.03, 0.06, 0.06, 0.02]

    """
    if correction == "none" or not p_values:
        return list(p_values)
    known = np.array([1.0 if p is None else p for p in p_values])
    count = len(known)
    if correction == "bonferroni":
        corrected = np.minimum(known * count, 1.0)
    else:  # the smallest p-value times n, the next times n - 1, ...; never less than one before it
        order = np.argsort(known)
        corrected = np.empty(count)
        corrected[order] = np.minimum(np.maximum.accumulate(known[order] * np.arange(count, 0, -1)), 1.0)
    return [None if p is None else float(value) for p, value in zip(p_values, corrected, strict=True)]
