"""A report page as one self-contained HTML file with style, script, plotting library and data.

Library and data are compressed and unpacked by the browser; tables and texts are plain HTML and need no script.
"""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import fedreuse
from fedreuse.accounting.boundaries.boundary import boundary_of
from fedreuse.report.axes import COLOURS
from fedreuse.report.table_forms import to_csv, to_latex

if TYPE_CHECKING:
    from fedreuse.report.page.page import Page
    from fedreuse.report.tables import Table

__all__ = ["render"]

_NUMBER = re.compile(r"(-?[<\d]|-$|no$|sealed$)")
_MOST_CARDS = 6
"""Variants with a card; the others are in the table."""
_LIBRARY = ("plotly", "package_data", "plotly.min.js")


def render(page: Page, refresh_seconds: int = 0, state: str = "") -> str:
    """Return the text of the HTML file.

    Args:
        page: The page to show.
        refresh_seconds: Seconds between two requests for the state of the runs; 0 for a file without a server.
        state: The answer of the server as long as no run has changed.
    """
    from jinja2 import Environment
    from markupsafe import Markup

    template = Environment(autoescape=True, trim_blocks=True).from_string(_asset("page.html"))
    names = page.shown.boundaries
    full = [section for section in page.sections if not section.is_empty]
    return template.render(
        title=page.title,
        version=fedreuse.__version__,
        sections=full,
        verdicts=[line for section in full for line in section.verdicts],
        references=[(page.shown.place_of(name), name) for name in page.shown.references],
        most_cards=_MOST_CARDS,
        place_of=page.shown.place_of,
        mark=Markup(_asset("mark.svg")),
        shown=page.shown.plain(),
        boundaries=[(name, boundary_of(name).meaning) for name in names],
        usual="messages" if "messages" in names else "",
        variant_of=_variant_of(page),
        has_words=_has_words,
        refresh=refresh_seconds,
        state=state,
        css=Markup(_asset("page.css")),
        script=Markup(_asset("page.js")),
        data=_packed(json.dumps(_data(page), separators=(",", ":"), allow_nan=False).encode()),
        library=_library(),
    )


def _data(page: Page) -> dict[str, Any]:
    figures = {figure.key: figure.data for section in page.sections for figure in section.figures}
    tables = {
        f"{key}-{number}": {"csv": to_csv(table), "latex": to_latex(table)}
        for section in page.sections
        for key, some in [
            (section.key, section.tables),
            *((f"{section.key}-{page.shown.place_of(view.reference)}", view.tables) for view in section.views),
        ]
        for number, table in enumerate(some, start=1)
    }
    return {**page.shown.plain(), "figures": figures, "tables": tables, "colours": COLOURS}


def _variant_of(page: Page) -> Callable[[Sequence[str]], int | None]:
    """Return a function that finds the variant of a table row: a cell is its name, or its name and a seed."""
    numbers = {name: at for at, name in enumerate(page.shown.names)}

    def find(row: Sequence[str]) -> int | None:
        for cell in row[:2]:
            known = numbers.get(cell, numbers.get(cell.rpartition(", seed ")[0]))
            if known is not None:
                return known
        return None

    return find


def _has_words(table: Table) -> list[bool]:
    """Return for each column whether it holds text, which is left-aligned, instead of numbers."""
    columns = zip(*table.rows, strict=True) if table.rows else ([] for _ in table.headers)
    return [not all(_NUMBER.match(cell) for cell in column if cell) for column in columns]


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    """Return the script of Plotly that its Python package contains."""
    package, *path = _LIBRARY
    return _packed(resources.files(package).joinpath(*path).read_bytes())


def _packed(content: bytes) -> str:
    return b64encode(gzip.compress(content, 9, mtime=0)).decode()
