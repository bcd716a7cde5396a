"""Section with the tests of plans: forest plots with margins, factorial effects, and tables by seed."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.lab.plans.confirmation import confirm
from fedreuse.lab.plans.confirmation_tables import confirmation_tables, named, plan_notes
from fedreuse.lab.plans.record import read_plan
from fedreuse.report.page.differences import differences, forest_row, forest_text
from fedreuse.report.page.section import Figure, Section, short
from fedreuse.report.results import planned_runs
from fedreuse.report.units import unit_of
from fedreuse.store.archive import name_of

if TYPE_CHECKING:
    from fedreuse.lab.plans.confirmation import Confirmation
    from fedreuse.report.page.shown import Shown
    from fedreuse.report.statistics.contrasts import Assessment
    from fedreuse.report.units import Unit

__all__ = ["inference"]


def inference(shown: Shown) -> Section:
    """Return the tests of the plans of the studies shown; without a plan, paired differences."""
    planned = [place for place in shown.places if read_plan(place) is not None]
    parts = [_planned(place, shown) for place in planned if _is_whole(place, shown)]
    waiting = [f"{name_of(place)}: a plan is tested only as a whole, and runs are missing." for place in planned
               if not _is_whole(place, shown)]  # fmt: skip
    if not planned:
        return differences(shown)
    lead = [line for part in parts for line in part.lead] + waiting
    figures = [figure for part in parts for figure in part.figures]
    tables = [table for part in parts for table in part.tables]
    verdicts = [line for part in parts for line in part.verdicts]
    return Section("inference", "Statistical tests", lead, figures, tables, verdicts=verdicts)


def _is_whole(place: Path, shown: Shown) -> bool:
    complete = {result.directory.resolve() for result in shown.complete}
    return all((place / folder).resolve() in complete for folder in planned_runs(place))


def _planned(place: Path, shown: Shown) -> Section:
    runs = {(place / folder).resolve() for folder in planned_runs(place)}
    found = confirm(place, [result for result in shown.complete if result.directory.resolve() in runs])
    shown_claims = found.planned or found.late  # exploratory claims have a table below
    unit = unit_of(shown_claims[0].entry.plan.metric, found.results)
    claims = [
        {
            **forest_row(named(answer, found), answer.assessment, unit),
            "margins": _margins(answer, unit),
            "verdict": answer.verdict,
        }
        for answer in shown_claims
    ]
    effects = [forest_row(name, effect, unit) for name, effect in _effects(found)]
    figures = [Figure("forest", f"Claims of the plan ({unit[0]})", forest_text(claims, unit), claims)]
    if effects:
        figures.append(
            Figure("forest_effects", f"Effects of the factorials ({unit[0]})", forest_text(effects, unit), effects)
        )
    verdicts = [f"{claim['label']}: {claim['verdict']} ({claim['shown']})" for claim in claims]
    return Section("", "", plan_notes(found), figures, confirmation_tables(found), verdicts=verdicts)


def _margins(answer: Any, unit: Unit) -> list[float | int | None]:
    """Return the margins of a claim: on both sides for equivalence, on the worse side for non-inferiority."""
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
        rows += [(f"{names[name]}{at}", effect) for name, effect in answer.effects.items()]
    return rows
