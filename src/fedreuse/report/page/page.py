"""Content of a report page: title, runs and sections, made from run directories alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedreuse.report.gather import admitted, gather
from fedreuse.report.page.cost import cost
from fedreuse.report.page.differences import differences
from fedreuse.report.page.frontier import frontier
from fedreuse.report.page.gate import gate
from fedreuse.report.page.headline import headline
from fedreuse.report.page.overview import overview
from fedreuse.report.page.section import Section
from fedreuse.report.page.shown import Shown
from fedreuse.report.page.traffic import communication
from fedreuse.report.page.trajectories import trajectories
from fedreuse.report.results import partial_notes
from fedreuse.report.tables import Table
from fedreuse.store.archive import name_of

__all__ = ["Page", "SectionMaker", "page_of"]

SectionMaker = Callable[[Shown], Section]


@dataclass(frozen=True)
class Page:
    """Content of a report."""

    title: str
    shown: Shown
    sections: tuple[Section, ...]

    @property
    def tables(self) -> list[Table]:
        """All tables, in the order of the page."""
        return [table for section in self.sections for table in section.tables]

    @property
    def notes(self) -> list[str]:
        """All notes below the tables of sections."""
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
        places: Run directories, folders of runs, or folders of studies; unfinished runs are included.
        title: The heading; the names of the folders if empty.
        targets: Validation scores as fractions; the page shows the cost to reach each of them.
        sections: Functions that make more sections from the runs shown. A section with the key of a built-in one
            replaces it; the others follow in order. `fedreuse.lab.sections` has those of the laboratory.

    Raises:
        RunDirectoryError: A folder does not exist, holds no run, or only damaged ones.

    Example:
        >>> page_of(["runs/demo"], targets=[0.85]).title  # doctest: +SKIP
        'demo'
    """
    folders = tuple(Path(place) for place in places)
    runs, left_out = admitted(gather(folders))
    shown = Shown(folders, tuple(runs), (*left_out, *partial_notes(folders)))
    built_in: tuple[SectionMaker, ...] = (
        headline,
        frontier,
        lambda shown: trajectories(shown, list(targets)),
        communication,
        gate,
        differences,
        cost,
        overview,
    )
    more = {section.key: section for make in sections for section in [make(shown)]}
    made = {section.key: section for make in built_in for section in [make(shown)]}
    return Page(title or ", ".join(name_of(folder) for folder in folders), shown, tuple((made | more).values()))
