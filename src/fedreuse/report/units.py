"""Units of metrics, and numbers, intervals and p-values as the text of table cells."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedreuse.report.results import Result
    from fedreuse.report.statistics.intervals import Interval

__all__ = ["Unit", "amount_in", "interval", "number", "p_value", "unit_of"]

_ROUNDING = 1e-9  # far below a hundredth of any unit, far above what sums of floats leave
Unit = tuple[str, float]
"""The name of a unit, and the factor by which a stored number is multiplied before it is shown."""


def unit_of(metric: str, results: Sequence[Result]) -> Unit:
    """Return the unit in which a metric is shown: accuracy in points (percent), bytes in MB, work in GFLOP."""
    if metric in ("test", "validation"):
        names = sorted({result.metric for result in results})
        return (f"{metric} accuracy, points", 100.0) if names == ["accuracy"] else (f"{metric} {', '.join(names)}", 1.0)
    units = {"bytes": ("MB", 1e-6), "flops": ("GFLOP", 1e-9), "seconds": ("s", 1.0), "rounds": ("rounds", 1.0)}
    return {**units, "simulated_seconds": ("simulated s", 1.0)}[metric]


def amount_in(unit: Unit, metric: str, value: float) -> str:
    """Return a margin with its unit: `1 point` for 0.01 of accuracy, `5 MB`; for other scores the number alone."""
    name, factor = unit
    shown = f"{value * factor:g}"
    if metric not in ("test", "validation"):
        return f"{shown} {name}"
    if factor == 1:
        return shown
    return f"{shown} {'point' if shown == '1' else 'points'}"


def number(value: float | None, unit: Unit) -> str:
    """Format a number: two decimals from 0.1 on, two significant digits below; rounding errors around zero are zero."""
    if value is None:
        return "-"
    shown = value * unit[1] if abs(value * unit[1]) > _ROUNDING else 0.0
    return f"{shown:,.2f}" if abs(shown) >= 0.1 or shown == 0 else f"{shown:.2g}"


def interval(ends: Interval | None, unit: Unit) -> str:
    """Format both ends of an interval; `...` for an upper end that is infinite."""
    if ends is None:
        return "-"
    return f"{number(ends.low, unit)} to {number(ends.high, unit) if isfinite(ends.high) else '...'}"


def p_value(p: float | None) -> str:
    """Format a p-value with four decimals; never as zero."""
    if p is None:
        return "-"
    return "<0.0001" if p < 1e-4 else f"{p:.4f}"
