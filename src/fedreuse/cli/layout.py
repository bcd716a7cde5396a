"""Layout of tables for a width: whole, in panels of fewer columns, or one block per row; no word or number is cut."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType

    from fedreuse.report.tables import Table

__all__ = ["fit"]

_LONGEST_UNFOLDED = 28
"""Columns up to this width are not folded."""
_NARROWEST_FOLDED = 10
_GAP = 2


def fit(table: Table, width: int) -> Iterator[RenderableType]:
    """Yield the pieces to print for a table in `width` columns."""
    panels = _panels(table, width)
    if panels is None or (len(panels) > 1 and len(table.rows) == 1):
        yield from _blocks(table, width)
        return
    for columns in panels:
        yield _draw(_only(table, columns), width)


def _panels(table: Table, width: int) -> list[list[int]] | None:
    """Return the columns of each panel, each beginning with the first column; None if no panel fits."""
    rest = range(1, len(table.headers))
    if _fits(table, [0, *rest], width):
        return [[0, *rest]]
    shared = [header.split("\n")[0] if table.is_grouped else str(at) for at, header in enumerate(table.headers)]
    groups = [list(group) for _, group in groupby(rest, key=lambda at: shared[at])]
    # columns under one shared header stay together where they fit
    pieces = [
        piece
        for group in groups
        for piece in ([group] if _fits(table, [0, *group], width) else [[column] for column in group])
    ]
    panels: list[list[int]] = []
    for piece in pieces:
        if not _fits(table, [0, *piece], width):
            return None
        if panels and _fits(table, [*panels[-1], *piece], width):
            panels[-1] += piece
        else:
            panels.append([0, *piece])
    return panels or None


def _only(table: Table, columns: Sequence[int]) -> Table:
    rows = tuple(tuple(row[at] for at in columns) for row in table.rows)
    return replace(table, headers=tuple(table.headers[at] for at in columns), rows=rows)


def _fits(table: Table, columns: Sequence[int], width: int) -> bool:
    part = _only(table, columns)
    if part.is_grouped:
        return max(map(len, _grouped(part))) <= width
    return _needed(_least_widths(part)) <= width


def _draw(table: Table, width: int) -> RenderableType:
    if table.is_grouped:
        return Text("\n".join(_grouped(table)))
    drawn = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column, (header, room) in enumerate(zip(table.headers, _widths(table, width), strict=True)):
        is_numeric = _are_numbers(row[column] for row in table.rows)
        drawn.add_column(Text(header), justify="right" if is_numeric else "left", width=room, overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn


def _blocks(table: Table, width: int) -> Iterator[Text]:
    """Yield each row as a block: its first cell, and below it the others with their headers."""
    headers = [header.replace("\n", " ") for header in table.headers[1:]]
    label = max(map(len, headers), default=0)
    longest_word = max((len(word) for row in table.rows for cell in row[1:] for word in cell.split()), default=0)
    is_beside = 2 + label + 2 + longest_word <= width
    yield Text("")
    for row in table.rows:
        yield Text(row[0], style="bold")
        for header, cell in zip(headers, row[1:], strict=True):
            if is_beside:
                yield _hanging(f"  {header.ljust(label)}  ", cell, width)
            else:
                yield from (_hanging("  ", header, width), _hanging("    ", cell, width))
    yield Text("")


def _hanging(head: str, text: str, width: int) -> Text:
    """Return a text behind its head, folded between words with its own lines kept; the terminal folds long words."""
    room = max(1, width - len(head))
    lines = [
        piece
        for line in text.splitlines() or [""]
        for piece in wrap(line, room, break_long_words=False, break_on_hyphens=False) or [""]
    ]
    return Text(head + f"\n{' ' * len(head)}".join(lines), no_wrap=True, overflow="ignore")


def _widths(table: Table, width: int) -> list[int]:
    """Return the width of each column: its natural width if all fit, else long texts share the remaining room."""
    widths, natural = _least_widths(table), _natural_widths(table)
    spare = width - _needed(widths)
    while spare > 0 and (folded := [at for at, room in enumerate(widths) if room < natural[at]]):
        share = max(1, spare // len(folded))
        for at in folded[:spare]:
            more = min(share, natural[at] - widths[at])
            widths[at] += more
            spare -= more
    return widths


def _natural_widths(table: Table) -> list[int]:
    """Return the longest line of each column."""
    return [max(map(len, _lines(column))) for column in _columns(table)]


def _least_widths(table: Table) -> list[int]:
    """Return the natural width of short columns; long texts may fold between words."""
    columns = [max(len(word) for line in _lines(column) for word in line.split() or [""]) for column in _columns(table)]
    return [
        natural if natural <= _LONGEST_UNFOLDED else max(_NARROWEST_FOLDED, longest_word)
        for natural, longest_word in zip(_natural_widths(table), columns, strict=True)
    ]


def _needed(widths: Sequence[int]) -> int:
    return sum(_GAP + room for room in widths)


def _columns(table: Table) -> Iterable[tuple[str, ...]]:
    return zip(table.headers, *table.rows, strict=True)


def _lines(cells: Iterable[str]) -> list[str]:
    return [line for cell in cells for line in cell.splitlines() or [""]]


def _grouped(table: Table) -> list[str]:
    """Return the lines of a table of many narrow numbers; a part that headers share is written once, above them."""
    first, *headers = table.headers
    shared, own = zip(*(("", header) if "\n" not in header else header.split("\n") for header in headers), strict=True)
    columns = zip(own, *(row[1:] for row in table.rows), strict=True)
    widths = [max(map(len, column)) for column in columns]
    groups = [(name, [at for at, _ in group]) for name, group in groupby(enumerate(shared), key=lambda pair: pair[1])]
    for name, members in groups:
        span = sum(1 + widths[at] for at in members)
        widths[members[0]] += max(0, len(name) + 2 - span) if name else 0  # widen the first column for a longer name
    name_width = max(len(first), *(len(row[0]) for row in table.rows))
    head = _line(first, own, name_width, widths)
    above = " " * name_width + "".join(name.rjust(sum(1 + widths[at] for at in members)) for name, members in groups)
    body = [_line(row[0], row[1:], name_width, widths) for row in table.rows]
    return ["", above, head, "─" * len(head), *body, ""]


def _line(name: str, cells: Sequence[str], name_width: int, widths: Sequence[int]) -> str:
    return name.ljust(name_width) + "".join(f" {cell.rjust(width)}" for cell, width in zip(cells, widths, strict=True))


def _are_numbers(cells: Iterable[str]) -> bool:
    shown = [cell.lstrip("-") for cell in cells if cell != "-"]
    return bool(shown) and all(cell[:1].isdigit() for cell in shown)
