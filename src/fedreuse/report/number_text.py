"""Numbers, intervals and p-values as the text of table cells."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedreuse.report.observations import Unit
    from fedreuse.report.statistics.intervals import Interval

__all__ = ["interval", "number", "p_value"]

_ROUNDING = 1e-9  # far below a hundredth of any unit, far above what sums of floats leave


def number(value: float | None, unit: Unit) -> str:
    """Two significant places of small numbers, two decimals of others; what rounding leaves of a zero is zero."""
    if value is None:
        return "-"
    shown = value * unit[1] if abs(value * unit[1]) > _ROUNDING else 0.0
    return f"{shown:,.2f}" if abs(shown) >= 0.1 or shown == 0 else f"{shown:.2g}"


def interval(ends: Interval | None, unit: Unit) -> str:
    """Both ends; no end above: an arrow."""
    if ends is None:
        return "-"
    return f"{number(ends.low, unit)} to {number(ends.high, unit) if isfinite(ends.high) else '...'}"


def p_value(p: float | None) -> str:
    """Four places, and never zero."""
    if p is None:
        return "-"
    return "<0.0001" if p < 1e-4 else f"{p:.4f}"
