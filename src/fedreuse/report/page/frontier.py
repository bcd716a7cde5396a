"""Frontier: score against bytes, boundary and direction by choice, seeds as points, intervals, the Pareto front."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fedreuse.accounting.boundaries.boundary import boundary_of
from fedreuse.report.page.section import Choice, Figure, Section, short
from fedreuse.report.page.shown import interval_over
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
    """The section; empty while no run is complete."""
    scores = [name for name in _SCORES if any(_SCORES[name](result) is not None for result in shown.complete)]
    if not scores or not shown.boundaries:
        return Section("frontier", "Frontier", ["No run is complete yet, so there is nothing to compare."])
    data = {
        f"{which}/{boundary}/{direction}": _points(shown, which, boundary, direction)
        for which in scores
        for boundary, direction in shown.pairs()
    }
    figure = Figure(
        "frontier",
        f"{shown.metric} against bytes",
        _in_words(shown, data, scores[0]),
        {"points": data, "unit": shown.unit, "metric": shown.metric},
        (Choice("which", "Score", {name: f"{name} {shown.metric}" for name in scores}),),
    )
    return Section("frontier", "Frontier", [], [figure], [_table(shown, scores)])


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """Which of the points (cost, gain) no other one beats, from the cheapest; of equal ones, the first."""
    best, front = float("-inf"), []
    for at in sorted(range(len(points)), key=lambda one: (points[one][0], -points[one][1])):
        if points[at][1] > best:
            best = points[at][1]
            front.append(at)
    return front


def _points(shown: Shown, which: str, boundary: str, direction: str) -> dict[str, Any]:
    """Runs as [run, MB, score], variants as [variant, MB, interval, score, interval], and who is on the front."""
    read, spent = _SCORES[which], crossed(boundary, direction)
    place = {id(result): at for at, result in enumerate(shown.results)}
    seeds, means, centres = [], [], []
    for variant in shown.variants:
        known = [result for result in variant.results if read(result) is not None]
        if not known:
            continue
        scores, costs = [shown.factor * (read(one) or 0.0) for one in known], [spent(one) or 0.0 for one in known]
        seeds += [[place[id(one)], short(x), short(y)] for one, x, y in zip(known, costs, scores, strict=True)]
        centre = variant.mean(spent) or 0.0, shown.factor * (variant.mean(read) or 0.0)
        centres.append(centre)
        ends = [interval_over(costs), interval_over(scores)]
        spread = [None if one is None else [short(end) for end in one] for one in ends]
        means.append([shown.place_of(variant.name), short(centre[0]), spread[0], short(centre[1]), spread[1]])
    return {"seeds": seeds, "means": means, "front": [means[at][0] for at in pareto(centres)]}


def _in_words(shown: Shown, data: dict[str, Any], which: str) -> str:
    boundary, direction = _usual(shown)
    found = data[f"{which}/{boundary}/{direction}"]
    by_place = {one[0]: one for one in found["means"]}
    front = "; ".join(
        f"{shown.names[at]} ({by_place[at][1]:g} MB, {by_place[at][3]:.4g}{shown.unit})" for at in found["front"]
    )
    return (
        f"Each mark is the mean of one of {len(by_place)} variants over its seeds, with Student's 95 % intervals; "
        f"small points are seeds. With bytes under {boundary} ({direction}) and {which} {shown.metric}, no other "
        f"variant is better and cheaper than these, from the cheapest: {front}."
    )


def _usual(shown: Shown) -> tuple[str, str]:
    """What a page shows first: messages in both directions, or the last that there is."""
    pairs = list(shown.pairs())
    return ("messages", "both") if ("messages", "both") in pairs else pairs[-1]


def _table(shown: Shown, scores: Sequence[str]) -> Table:
    """The points of the figure as numbers: scores, MB under every boundary in its headline direction, the front."""
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
        f"Means over seeds, all rounds together. †: no other variant has a higher {scores[0]} {shown.metric} for fewer "
        "of these bytes.\n" + boundary_legend(shown.boundaries)
    )
    return Table("Score and bytes", headers, tuple(rows), legend)
