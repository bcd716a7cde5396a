"""What a page consists of: sections with a few sentences, figures with a text alternative, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedreuse.report.tables import Table

__all__ = ["Choice", "Figure", "Section", "short", "shorts"]


@dataclass(frozen=True)
class Choice:
    """What a reader may choose for one figure: a name for the code of the page, a label, and the options by value."""

    name: str
    label: str
    options: Mapping[str, str]


@dataclass(frozen=True)
class Figure:
    """A figure: `key` names the function of the page that draws it, `text` says in words what is seen."""

    key: str
    title: str
    text: str
    data: Any
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True)
class Section:
    """A part of the page: an anchor, a heading, paragraphs, figures, tables, and what is to be said below these."""

    key: str
    title: str
    lead: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = field(default_factory=tuple)
    notes: Sequence[str] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.lead or self.figures or self.tables)


def short(number: float | None) -> float | int | None:
    """A number for a figure: six significant digits; what is not finite is absent."""
    if number is None or not isfinite(number):
        return None
    rounded = float(f"{number:.6g}")
    return int(rounded) if rounded.is_integer() else rounded


def shorts(numbers: Iterable[float | None]) -> list[float | int | None]:
    """Numbers for a figure."""
    return [short(number) for number in numbers]
