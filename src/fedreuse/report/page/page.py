"""A page as data: its title, its sections, and what their figures refer to; made from run directories alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedreuse.report.admission import admitted
from fedreuse.report.gather import gather
from fedreuse.report.page.cost import cost
from fedreuse.report.page.differences import differences
from fedreuse.report.page.frontier import frontier
from fedreuse.report.page.gate import gate
from fedreuse.report.page.overview import overview
from fedreuse.report.page.section import Section
from fedreuse.report.page.shown import Shown
from fedreuse.report.page.traffic import where_the_bytes_go
from fedreuse.report.page.trajectories import trajectories
from fedreuse.report.results import partial_notes
from fedreuse.report.tables import Table
from fedreuse.store.archive import name_of

__all__ = ["Page", "SectionMaker", "page_of"]

SectionMaker = Callable[[Shown], Section]


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
    *,
    sections: Sequence[SectionMaker] = (),
) -> Page:
    """Read runs into a page.

    Args:
        places: Run directories, folders of runs, or folders of studies; runs that still go on count too.
        title: The heading; the names of the places if empty.
        targets: Validation scores as fractions: which runs reach them, when, and for how many bytes.
        sections: More sections, each made from the runs shown. One with the key of a built-in section replaces it;
            the others follow in order. `fedreuse.lab.sections` has those of the laboratory.

    Raises:
        RunDirectoryError: A place that does not exist, holds no run, or a damaged one.

    Example:
        >>> page_of(["runs/demo"], targets=[0.85]).title  # doctest: +SKIP
        'demo'
    """
    found = tuple(Path(place) for place in places)
    runs, left_out = admitted(gather(found))
    shown = Shown(found, tuple(runs), (*left_out, *partial_notes(found)))
    built_in: tuple[SectionMaker, ...] = (
        overview,
        frontier,
        lambda shown: trajectories(shown, list(targets)),
        where_the_bytes_go,
        gate,
        differences,
        cost,
    )
    more = {section.key: section for make in sections for section in [make(shown)]}
    made = {section.key: section for make in built_in for section in [make(shown)]}
    return Page(title or ", ".join(name_of(place) for place in found), shown, tuple((made | more).values()))
