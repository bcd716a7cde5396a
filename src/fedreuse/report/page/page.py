"""A page as data: its title, its sections, and what their figures refer to; made from run directories alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedreuse.report.admission import admitted
from fedreuse.report.gather import gather
from fedreuse.report.page.cost import cost
from fedreuse.report.page.frontier import frontier
from fedreuse.report.page.gate import gate
from fedreuse.report.page.inference import inference
from fedreuse.report.page.overview import overview
from fedreuse.report.page.paper import beside_the_paper
from fedreuse.report.page.section import Section
from fedreuse.report.page.shown import Shown
from fedreuse.report.page.traffic import where_the_bytes_go
from fedreuse.report.page.trajectories import trajectories
from fedreuse.report.results import partial_notes
from fedreuse.report.tables import Table
from fedreuse.runs.plan_record import read_plan

if TYPE_CHECKING:
    from fedreuse.accounting.energy import EnergyModel

__all__ = ["Page", "page_of"]


@dataclass(frozen=True)
class Page:
    """Everything that a report shows."""

    title: str
    shown: Shown
    sections: tuple[Section, ...]

    @property
    def tables(self) -> list[Table]:
        """Every table, in the order of the page."""
        return [table for section in self.sections for table in section.tables]


def page_of(
    places: Sequence[str | Path],
    title: str = "",
    targets: Sequence[float] = (),
    energy: EnergyModel | None = None,
    *,
    is_like_paper: bool = False,
) -> Page:
    """Read runs into a page.

    Args:
        places: Run directories, folders of runs, or folders of studies; runs that still go on count too.
        title: The heading; the names of the places if empty.
        targets: Validation scores as fractions, beside those of a plan: who reaches them, when, and for how much.
        energy: How modelled energy is computed; None shows none.
        is_like_paper: Add the paper's tables and figures, with the published numbers beside those of the runs.

    Raises:
        RunDirectoryError: A place that does not exist, holds no run, or a damaged one.

    Example:
        >>> page_of(["runs/demo"], targets=[0.85]).title  # doctest: +SKIP
        'demo'
    """
    found = tuple(Path(place) for place in places)
    runs, left_out = admitted(gather(found))
    shown = Shown(found, tuple(runs), (*left_out, *partial_notes(found)))
    asked = [target for place in found if (record := read_plan(place)) for target in record.current.plan.targets]
    wanted = list(dict.fromkeys([*asked, *targets]))
    sections = (
        overview(shown),
        frontier(shown),
        trajectories(shown, wanted),
        where_the_bytes_go(shown),
        gate(shown),
        inference(shown),
        cost(shown, energy),
        *([beside_the_paper(shown)] if is_like_paper else []),
    )
    return Page(title or ", ".join(place.resolve().name for place in found), shown, sections)
