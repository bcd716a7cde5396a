"""A small plot for terminals: validation score over megabytes, one mark per variant."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import TYPE_CHECKING

from rich.text import Text

from fedreuse.report.axes import COLOURS
from fedreuse.report.figures import line_of
from fedreuse.report.variants import by_variant

if TYPE_CHECKING:
    from fedreuse.report.figures import Line
    from fedreuse.report.results import Result

__all__ = ["plot"]

MARKS = "●■▲◆▼+x*"
_HEIGHT, _AXIS = 12, 8
_BOUNDARY = "messages"


def plot(results: Sequence[Result], width: int) -> Text | None:
    """Draw mean scores over the bytes of all messages, on a logarithmic scale.

    Args:
        results: Runs; incomplete ones are left out.
        width: Columns of the terminal, at least 40.

    Returns:
        None without two evaluations of a variant, without bytes, or for more variants than marks.
    """
    variants = [one for one in by_variant(results) if all(_BOUNDARY in run.history.traffic for run in one.results)]
    found = [line_of(variant, _BOUNDARY) for variant in variants]
    lines = [line for line in found if line is not None and len(line.rounds) > 1]
    if not lines or len(lines) > len(MARKS) or width < 40:
        return None
    room = min(width, 100) - _AXIS - 2
    curves = [_points(line) for line in lines]
    across = [x for points in curves for x, _ in points]
    scores = [y for points in curves for _, y in points]
    left, right, low, high = min(across), max(across), min(scores), max(scores)
    cells: dict[tuple[int, int], int] = {}
    for number, points in enumerate(curves):
        for x, y in points:
            column = round((room - 1) * (x - left) / ((right - left) or 1))
            row = round((_HEIGHT - 1) * (high - y) / ((high - low) or 1))
            cells[row, column] = number
    unit = " %" if variants[0].results[0].metric == "accuracy" else ""
    drawn = Text()
    for row in range(_HEIGHT):
        shown = {0: high, _HEIGHT - 1: low}.get(row)
        drawn.append(f"{'':{_AXIS}} │" if shown is None else f"{f'{shown:.4g}{unit}':>{_AXIS}} ┤")
        for column in range(room):
            at = cells.get((row, column))
            drawn.append(" " if at is None else MARKS[at], None if at is None else COLOURS[at])
        drawn.append("\n")
    ends = [f"{10**left:.3g} MB", f"{10**right:.3g} MB, both ways"]
    drawn.append(f"{'':{_AXIS}} └{'─' * room}\n{'':{_AXIS}}  {ends[0]}{ends[1]:>{room - len(ends[0])}}\n")
    for number, line in enumerate(lines):
        drawn.append(f"{'':{_AXIS}}  {MARKS[number]} ", COLOURS[number])
        drawn.append(f"{line.name}\n")
    return drawn


def _points(line: Line) -> list[tuple[float, float]]:
    """Return the points of a line as (logarithm of megabytes, score)."""
    sizes = line.megabytes.mean(0)
    return [(log10(size), float(score)) for size, score in zip(sizes, line.mean, strict=True) if size > 0]
