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
    from fedreuse.report.protocol import Suite

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

    @property
    def notes(self) -> list[str]:
        """What stands below the tables of a section."""
        return [line for section in self.sections for line in section.notes]


def page_of(
    places: Sequence[str | Path],
    title: str = "",
    targets: Sequence[float] = (),
    energy: EnergyModel | None = None,
    *,
    suites: Sequence[Suite] = (),
) -> Page:
    """Read runs into a page.

    Args:
        places: Run directories, folders of runs, or folders of studies; runs that still go on count too.
        title: The heading; the names of the places if empty.
        targets: Validation scores as fractions, beside those of a plan: who reaches them, when, and for how much.
        energy: How modelled energy is computed; None shows none.
        suites: What the paper ran: its tables and figures are added, with the published numbers beside those of the
            runs that are configured alike. Empty: none are.

    Raises:
        RunDirectoryError: A place that does not exist, holds no run, or a damaged one; with `suites`, no run of them.

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
        *([beside_the_paper(shown, suites)] if suites else []),
    )
    return Page(title or ", ".join(place.resolve().name for place in found), shown, sections)
