"""Inference: contrasts as a forest plot with their margins, factorial effects, and the tables by seed."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.report.confirmation import confirm
from fedreuse.report.confirmation_tables import confirmation_tables, in_words, interval, named, number
from fedreuse.report.observations import unit_of
from fedreuse.report.page.section import Figure, Section, short
from fedreuse.report.paired import paired_differences, paired_table
from fedreuse.report.results import planned_runs
from fedreuse.runs.plan_record import read_plan

if TYPE_CHECKING:
    from fedreuse.report.confirmation import Confirmation
    from fedreuse.report.observations import Unit
    from fedreuse.report.page.shown import Shown
    from fedreuse.statistics.contrasts import Assessment

__all__ = ["inference"]


def inference(shown: Shown) -> Section:
    """The answers to the plans of the studies that are shown; without a plan, paired differences."""
    planned = [place for place in shown.places if read_plan(place) is not None]
    parts = [_planned(place, shown) for place in planned if _is_whole(place, shown)]
    waiting = [f"{place.name}: a plan is answered as a whole, and runs are missing." for place in planned
               if not _is_whole(place, shown)]  # fmt: skip
    if not planned:
        parts = [_paired(shown)]
    lead = [line for part in parts for line in part.lead] + waiting
    figures = [figure for part in parts for figure in part.figures]
    return Section("inference", "Inference", lead, figures, [table for part in parts for table in part.tables])


def _is_whole(place: Path, shown: Shown) -> bool:
    complete = {result.directory.resolve() for result in shown.complete}
    return all((place / folder).resolve() in complete for folder in planned_runs(place))


def _planned(place: Path, shown: Shown) -> Section:
    runs = {(place / folder).resolve() for folder in planned_runs(place)}
    found = confirm(place, [result for result in shown.complete if result.directory.resolve() in runs])
    unit = unit_of(found.record.current.plan.metric, found.results)
    claims = [
        {**_row(named(answer, found), answer.said, unit), "margins": _margins(answer, unit), "verdict": answer.verdict}
        for answer in found.answers
    ]
    effects = [_row(name, said, unit) for name, said in _effects(found)]
    figures = [Figure("forest", f"Claims of the plan ({unit[0]})", _told(claims, unit), claims)]
    if effects:
        figures.append(
            Figure("forest_effects", f"Effects of the factorials ({unit[0]})", _told(effects, unit), effects)
        )
    return Section("", "", in_words(found), figures, confirmation_tables(found))


def _paired(shown: Shown) -> Section:
    """Differences to the first variant, on the test scores or, where these are sealed, on validation."""
    which = "test" if any(result.test_score is not None for result in shown.complete) else "validation"
    pairs, table = paired_differences(shown.complete, which), paired_table(shown.complete, which)
    if table is None:
        text = (
            "Differences need two seeds or more of two variants that share data, partition, cohorts and initial model."
        )
        return Section("", "", [text])
    unit = unit_of(which, shown.complete)
    rows = [_row(f"{name} - {against}", said, unit) for name, (against, said) in pairs.items()]
    figure = Figure("forest", f"Differences by seed ({unit[0]})", _told(rows, unit), rows)
    return Section("", "", ["No plan was registered, so that nothing is decided here."], [figure], [table])


def _row(label: str, said: Assessment, unit: Unit) -> dict[str, Any]:
    ends = None if said.t is None else [short(unit[1] * end) for end in said.t]
    seeds = [short(unit[1] * one) for one in said.by_seed.values()]
    shown = f"{number(said.mean, unit)} ({interval(said.t, unit)})"
    return {"label": label, "mean": short(unit[1] * said.mean), "interval": ends, "seeds": seeds, "shown": shown}


def _margins(answer: Any, unit: Unit) -> list[float | int | None]:
    """Where the margin of a claim lies: on both sides for equivalence, on the worse side for non-inferiority."""
    contrast = answer.claim.contrast
    margin = unit[1] * contrast.margin
    if not margin or not isfinite(margin):
        return []
    if contrast.test == "equivalence":
        return [short(-margin), short(margin)]
    sign = 1 if contrast.better == "higher" else -1
    return [short(-sign * margin if contrast.test == "non_inferiority" else sign * margin)]


def _effects(found: Confirmation) -> list[tuple[str, Assessment]]:
    rows = []
    for answer in found.factorials:
        first, second = answer.axes
        names = {"first": first, "second": second, "interaction": f"{first} x {second}"}
        at = f" on {answer.where}" if answer.where else ""
        rows += [(f"{names[name]}{at}", said) for name, said in answer.effects.items()]
    return rows


def _told(rows: Sequence[dict[str, Any]], unit: Unit) -> str:
    told = "; ".join(
        f"{row['label']}: {row['shown']}{', ' + row['verdict'] if 'verdict' in row else ''}" for row in rows
    )
    return f"A row per difference in {unit[0]}: its mean, Student's interval, one small mark per seed. {told}."
