"""Which cases of a parametrised test stand for the others, where there is no time for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

__all__ = ["spread"]

T = TypeVar("T")


def spread(cases: Sequence[T], most: int) -> list[T]:
    """At most so many of the cases (at least 2), from the first to the last at even distances."""
    if len(cases) <= most:
        return list(cases)
    return [cases[round(number * (len(cases) - 1) / (most - 1))] for number in range(most)]
