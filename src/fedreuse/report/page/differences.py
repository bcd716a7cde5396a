"""Differences section: paired differences by seed to the reference, as a forest plot and a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fedreuse.report.page.section import Figure, Section, View, short
from fedreuse.report.paired import paired_differences, paired_table
from fedreuse.report.units import interval, number, unit_of

if TYPE_CHECKING:
    from fedreuse.report.page.shown import Shown
    from fedreuse.report.statistics.contrasts import Assessment
    from fedreuse.report.units import Unit

__all__ = ["differences", "forest_row", "forest_text"]


def differences(shown: Shown) -> Section:
    """Return differences to each reference in the test score, or in the validation score if the test is sealed."""
    which = "test" if any(result.test_score is not None for result in shown.complete) else "validation"
    tables = {name: paired_table(shown.complete, which, name) for name in shown.references}
    known = {name: table for name, table in tables.items() if table is not None}
    if not known or shown.references[0] not in known:
        lead = ["Differences need two variants with two or more seeds on the same data, cohorts and initial model."]
        return Section("inference", "Statistical tests", lead)
    unit = unit_of(which, shown.complete)
    rows = {
        str(shown.place_of(reference)): [
            forest_row(f"{name} - {against}", pair, unit)
            for name, (against, pair) in paired_differences(shown.complete, which, reference).items()
        ]
        for reference in known
    }
    usual = shown.references[0]
    text = forest_text(rows[str(shown.place_of(usual))], unit)
    figure = Figure("forest", f"Differences by seed ({unit[0]})", text, rows)
    lead = ["No plan was registered: nothing is decided here."]
    views = [View(name, (), (), [table]) for name, table in known.items() if name != usual]
    return Section(
        "inference", "Statistical tests", lead, [figure], [known[usual]], reference=usual, views=views
    )  # fmt: skip


def forest_row(label: str, pairs: Assessment, unit: Unit) -> dict[str, Any]:
    """Return one row of a forest plot: mean, Student's interval, and one value per seed, in the given unit."""
    ends = None if pairs.t is None else [short(unit[1] * end) for end in pairs.t]
    seeds = [short(unit[1] * value) for value in pairs.by_seed.values()]
    text = f"{number(pairs.mean, unit)} ({interval(pairs.t, unit)})"
    return {"label": label, "mean": short(unit[1] * pairs.mean), "interval": ends, "seeds": seeds, "shown": text}


def forest_text(rows: Sequence[dict[str, Any]], unit: Unit) -> str:
    """Return the text alternative of a forest plot."""
    listed = "; ".join(
        f"{row['label']}: {row['shown']}{', ' + row['verdict'] if 'verdict' in row else ''}" for row in rows
    )
    return f"One row per difference in {unit[0]}: mean, Student's interval as error bar, one mark per seed. {listed}."
