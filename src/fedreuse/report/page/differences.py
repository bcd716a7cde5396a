"""Differences section: paired differences by seed to the first variant, as a forest plot and a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fedreuse.report.number_text import interval, number
from fedreuse.report.observations import unit_of
from fedreuse.report.page.section import Figure, Section, short
from fedreuse.report.paired import paired_differences, paired_table

if TYPE_CHECKING:
    from fedreuse.report.observations import Unit
    from fedreuse.report.page.shown import Shown
    from fedreuse.report.statistics.contrasts import Assessment

__all__ = ["differences", "forest_row", "forest_text"]


def differences(shown: Shown) -> Section:
    """Return differences to the first variant on the test score or, where it is sealed, on the validation score."""
    which = "test" if any(result.test_score is not None for result in shown.complete) else "validation"
    pairs, table = paired_differences(shown.complete, which), paired_table(shown.complete, which)
    if table is None:
        text = (
            "Differences need two seeds or more of two variants that share data, partition, cohorts and initial model."
        )
        return Section("inference", "Inference", [text])
    unit = unit_of(which, shown.complete)
    rows = [forest_row(f"{name} - {against}", found, unit) for name, (against, found) in pairs.items()]
    figure = Figure("forest", f"Differences by seed ({unit[0]})", forest_text(rows, unit), rows)
    return Section("inference", "Inference", ["No plan was registered: nothing is decided here."], [figure], [table])


def forest_row(label: str, found: Assessment, unit: Unit) -> dict[str, Any]:
    """Return one row of a forest plot: mean, Student's interval, and one value per seed, in the unit shown."""
    ends = None if found.t is None else [short(unit[1] * end) for end in found.t]
    seeds = [short(unit[1] * value) for value in found.by_seed.values()]
    text = f"{number(found.mean, unit)} ({interval(found.t, unit)})"
    return {"label": label, "mean": short(unit[1] * found.mean), "interval": ends, "seeds": seeds, "shown": text}


def forest_text(rows: Sequence[dict[str, Any]], unit: Unit) -> str:
    """Return the text alternative of a forest plot."""
    listed = "; ".join(
        f"{row['label']}: {row['shown']}{', ' + row['verdict'] if 'verdict' in row else ''}" for row in rows
    )
    return f"A row per difference in {unit[0]}: its mean, Student's interval, one small mark per seed. {listed}."
