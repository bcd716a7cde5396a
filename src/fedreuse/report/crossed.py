"""Tables of studies with two axes: one axis in rows, the other in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedreuse.report.tables import Table
from fedreuse.report.variants import Variant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fedreuse.report.results import Result

__all__ = ["crossed"]

_SEED = "seed"


def crossed(results: Sequence[Result]) -> list[Table]:
    """Return test scores, and attack success if known, by the labels of two axes; empty for other studies."""
    axes = _axes(results)
    if axes is None:
        return []
    made = [_table(results, axes, "Test score in %", lambda result: result.test_score)]
    if any(result.attack_success is not None for result in results):
        title = "Attack success in %: share of test examples that are classified as the attack wants"
        made.append(_table(results, axes, title, lambda result: result.attack_success))
    return made


def _axes(results: Sequence[Result]) -> tuple[str, str] | None:
    """Return the two axes with several labels; None if there are not exactly two."""
    labels: dict[str, set[str]] = {}
    for result in results:
        for axis, label in result.labels.items():
            labels.setdefault(axis, set()).add(label)
    differing = [axis for axis, seen in labels.items() if axis != _SEED and len(seen) > 1]
    return (differing[0], differing[1]) if len(differing) == 2 else None


def _table(
    results: Sequence[Result], axes: tuple[str, str], title: str, value: Callable[[Result], float | None]
) -> Table:
    down, across = (list(dict.fromkeys(result.labels[axis] for result in results)) for axis in axes)
    rows = []
    for label in down:
        cells = [_cell(results, {axes[0]: label, axes[1]: other}, value) for other in across]
        if any(cell != "-" for cell in cells):
            rows.append((label, *cells))
    seeds = len({result.seed for result in results})
    over = "one seed" if seeds == 1 else f"mean ± standard deviation over {seeds} seeds"
    return Table(f"{title} ({over})", (f"{axes[0]} \\ {axes[1]}", *across), tuple(rows))


def _cell(results: Sequence[Result], at: dict[str, str], value: Callable[[Result], float | None]) -> str:
    here = tuple(result for result in results if all(result.labels[axis] == label for axis, label in at.items()))
    found = Variant("", here).over_seeds(value)
    if found is None:
        return "-"
    mean, spread = found
    return f"{100 * mean:.1f}" if spread is None else f"{100 * mean:.1f} ± {100 * spread:.1f}"
