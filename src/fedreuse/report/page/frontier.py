"""Pareto front section: score against bytes at the chosen boundary, with seeds, error bars and the front."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.boundaries.boundary import boundary_of
from fedreuse.report.page.section import Choice, Figure, Section, short
from fedreuse.report.tables import Table, boundary_legend, megabytes, score
from fedreuse.report.variants import crossed

if TYPE_CHECKING:
    from fedreuse.report.page.shown import Shown
    from fedreuse.report.results import Result

__all__ = ["frontier", "pareto"]

_SCORES: dict[str, Callable[[Result], float | None]] = {
    "test": lambda result: result.test_score,
    "validation": lambda result: result.validation_score,
}


def frontier(shown: Shown) -> Section:
    """Return the section; without figures while no run is complete."""
    scores = [name for name in _SCORES if any(_SCORES[name](result) is not None for result in shown.complete)]
    if not scores or not shown.boundaries:
        return Section("frontier", "Score and bytes", ["No run is complete yet."])
    data = {
        f"{which}/{boundary}/{direction}": _points(shown, which, boundary, direction)
        for which in scores
        for boundary, direction in shown.pairs()
    }
    figure = Figure(
        "frontier",
        f"{shown.metric} against bytes",
        _description(shown, data, scores[0]),
        {"points": data, "unit": shown.unit, "metric": shown.metric, "limits": shown.limits},
        (Choice("which", "Score", {name: f"{name} {shown.metric}" for name in scores}),),
    )
    return Section(
        "frontier",
        "Accuracy and bytes" if shown.metric == "accuracy" else "Score and bytes",
        [],
        [figure],
        [_table(shown, scores)],
        is_open=True,
    )


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indices of the Pareto-optimal points (cost, gain), from the cheapest; of equal points the first."""
    best, front = float("-inf"), []
    for at in sorted(range(len(points)), key=lambda index: (points[index][0], -points[index][1])):
        if points[at][1] > best:
            best = points[at][1]
            front.append(at)
    return front


def _points(shown: Shown, which: str, boundary: str, direction: str) -> dict[str, Any]:
    """Return runs as [run, MB, score], variants as [variant, MB, interval, score, interval], and the front."""
    read, spent = _SCORES[which], crossed(boundary, direction)
    index = {id(result): at for at, result in enumerate(shown.results)}
    seeds, means, centres = [], [], []
    for variant in shown.variants:
        known = [result for result in variant.results if read(result) is not None]
        if not known:
            continue
        scores, costs = [shown.factor * (read(run) or 0.0) for run in known], [spent(run) or 0.0 for run in known]
        seeds += [[index[id(run)], short(x), short(y)] for run, x, y in zip(known, costs, scores, strict=True)]
        centre = variant.mean(spent) or 0.0, shown.factor * (variant.mean(read) or 0.0)
        centres.append(centre)
        ends = [shown.spread(costs, is_score=False), shown.spread(scores)]
        spread = [None if pair is None else [short(end) for end in pair] for pair in ends]
        means.append([shown.place_of(variant.name), short(centre[0]), spread[0], short(centre[1]), spread[1]])
    return {"seeds": seeds, "means": means, "front": [means[at][0] for at in pareto(centres)]}


def _description(shown: Shown, data: dict[str, Any], which: str) -> str:
    """Return the text alternative, for the boundary and direction that the page shows first."""
    pairs = list(shown.pairs())
    boundary, direction = ("messages", "both") if ("messages", "both") in pairs else pairs[-1]
    points = data[f"{which}/{boundary}/{direction}"]
    means = {mean[0]: mean for mean in points["means"]}
    front = "; ".join(
        f"{shown.names[at]} ({means[at][1]:g} MB, {means[at][3]:.4g}{shown.unit})" for at in points["front"]
    )
    return (
        f"Each mark is the mean of one of {len(means)} variants over its seeds; error bars: {shown.spread_text}; small "
        f"points are seeds. With bytes at {boundary} ({direction}) and {which} {shown.metric}, the Pareto "
        f"front is, from the cheapest: {front}."
    )


def _table(shown: Shown, scores: Sequence[str]) -> Table:
    """Return the points of the figure as numbers: scores, and MB under every boundary in its headline direction."""
    pairs = [(name, boundary_of(name).headline) for name in shown.boundaries]
    fronts = {pair: _points(shown, scores[0], *pair)["front"] for pair in pairs}
    rows = []
    for variant in shown.variants:
        at = shown.place_of(variant.name)
        cells = [score(variant.mean(_SCORES[name]), shown.metric) for name in scores]
        for pair in pairs:
            cost = variant.mean(crossed(*pair))
            cells.append("-" if cost is None else megabytes(1e6 * cost) + (" †" if at in fronts[pair] else ""))
        rows.append((variant.name, str(len(variant.results)), *cells))
    headers = ("variant", "seeds", *scores, *(f"MB {direction}\n{name}" for name, direction in pairs))
    legend = (
        f"Means over seeds, all rounds together. †: Pareto-optimal, no other variant has a higher {scores[0]} "
        f"{shown.metric} for fewer of these bytes.\n" + boundary_legend(shown.boundaries)
    )
    return Table("Score and bytes", headers, tuple(rows), legend)
