"""Parts of a page: sections with sentences, figures with a text alternative, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedreuse.report.tables import Table

__all__ = ["Card", "Choice", "Figure", "Section", "View", "short", "shorts"]


@dataclass(frozen=True)
class Choice:
    """A selection box of one figure: its name in the page's script, its label, and its options by value."""

    name: str
    label: str
    options: Mapping[str, str]


@dataclass(frozen=True)
class Figure:
    """A figure: `key` names the function of the page's script that draws it, `text` is its text alternative."""

    key: str
    title: str
    text: str
    data: Any
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True)
class Card:
    """A variant in three numbers, each with its explanation, and what the difference shows."""

    variant: str
    numbers: Sequence[tuple[str, str]]
    verdict: str = ""


@dataclass(frozen=True)
class View:
    """Content of a section for another reference; the page shows it when that reference is chosen."""

    reference: str
    lead: Sequence[str] = ()
    cards: Sequence[Card] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Section:
    """A section of the page: anchor, heading, paragraphs, cards, figures, tables, and notes below them.

    `views` has the content that depends on the reference, for each other reference; `reference` is that of the section
    itself. `verdicts` are shown in the first section of the page. A section that is not `is_open` opens by a click.
    """

    key: str
    title: str
    lead: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = field(default_factory=tuple)
    notes: Sequence[str] = ()
    cards: Sequence[Card] = ()
    reference: str = ""
    views: Sequence[View] = ()
    verdicts: Sequence[str] = ()
    is_open: bool = False

    @property
    def is_empty(self) -> bool:
        """True for a section without content."""
        return not (self.lead or self.figures or self.tables)


def short(number: float | None) -> float | int | None:
    """Round a number for a figure to six significant digits; None if it is not finite."""
    if number is None or not isfinite(number):
        return None
    rounded = float(f"{number:.6g}")
    return int(rounded) if rounded.is_integer() else rounded


def shorts(numbers: Iterable[float | None]) -> list[float | int | None]:
    """Round numbers for a figure."""
    return [short(number) for number in numbers]
