"""How things are shown: tables and paragraphs for people, JSON for machines."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fedreuse.report.tables import Table

__all__ = ["console", "program", "show_json", "show_lines", "show_pairs", "show_table"]

_WIDTH = 100
_LONGEST_UNFOLDED = 28
_NARROWEST_FOLDED = 10


def console(stderr: bool = False) -> Console:
    """Where people look; 100 columns when the output is not a terminal."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else _WIDTH, highlight=False, soft_wrap=False)


def program() -> str:
    """What to type to call this program: its name, or its path when the name is not on the search path."""
    started = Path(sys.argv[0])
    if started.name != "fedreuse" or shutil.which("fedreuse") is not None:
        return "fedreuse"
    here = Path.cwd()
    return str(started.relative_to(here) if started.is_relative_to(here) else started)


def show_json(content: Any) -> None:
    """Machines get JSON and nothing else."""
    typer.echo(json.dumps(content, indent=2, allow_nan=False))


def show_lines(*lines: str) -> None:
    """Paragraphs, folded by the terminal alone, so that paths and commands can be copied."""
    for line in lines:
        typer.echo(line)


def show_table(table: Table) -> None:
    """A table with its title and legend; only long texts are folded, unless the terminal is too narrow for the rest."""
    place = console()
    if table.title:
        place.print(Text(table.title, style="bold"))
    if table.is_grouped:
        place.print(Text("\n".join(_grouped(table))), soft_wrap=True)
    else:
        place.print(_draw(table, is_folded=_least_width(table) > place.width))
    if table.legend:
        place.print(Text(table.legend, style="dim"))
        place.print()


def show_pairs(title: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values in two columns."""
    drawn = RichTable(box=None, show_header=False)
    drawn.add_column(no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, value in pairs:
        drawn.add_row(Text(name), Text(value))
    place = console()
    place.print(Text(title, style="bold"), soft_wrap=True)
    place.print(drawn)
    place.print()


def _widths(table: Table) -> list[int]:
    """The longest line of each column."""
    columns = zip(table.headers, *table.rows, strict=True)
    return [max(len(line) for cell in column for line in (cell.splitlines() or [""])) for column in columns]


def _least_width(table: Table) -> int:
    """What the table needs if only long texts fold."""
    return 2 + sum(2 + (width if width <= _LONGEST_UNFOLDED else _NARROWEST_FOLDED) for width in _widths(table))


def _draw(table: Table, is_folded: bool) -> RichTable:
    drawn = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column, (header, width) in enumerate(zip(table.headers, _widths(table), strict=True)):
        drawn.add_column(
            Text(header),
            justify="right" if _are_numbers(row[column] for row in table.rows) else "left",
            no_wrap=not is_folded and width <= _LONGEST_UNFOLDED,
            overflow="fold",
        )
    for row in table.rows:
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn


def _grouped(table: Table) -> Iterator[str]:
    """A name and many narrow numbers, line by line; what neighbouring headers share stands above all of them."""
    first, *headers = table.headers
    shared, own = zip(*(header.split("\n") for header in headers), strict=True)
    columns = zip(own, *(row[1:] for row in table.rows), strict=True)
    widths = [max(map(len, column)) for column in columns]
    spans = dict.fromkeys(shared, 0)
    for place, group in enumerate(shared):
        spans[group] += 1 + widths[place]
    for group, span in spans.items():
        widths[shared.index(group)] += max(0, len(group) + 2 - span)  # its first column makes room for the name
    name_width = max(len(first), *(len(row[0]) for row in table.rows))
    head = _line(first, own, name_width, widths)
    yield ""
    yield " " * name_width + "".join(group.rjust(max(span, len(group) + 2)) for group, span in spans.items())
    yield head
    yield "─" * len(head)
    yield from (_line(row[0], row[1:], name_width, widths) for row in table.rows)
    yield ""


def _line(name: str, cells: Sequence[str], name_width: int, widths: Sequence[int]) -> str:
    return name.ljust(name_width) + "".join(f" {cell.rjust(width)}" for cell, width in zip(cells, widths, strict=True))


def _are_numbers(cells: Iterable[str]) -> bool:
    shown = [cell.lstrip("-") for cell in cells if cell != "-"]
    return bool(shown) and all(cell[:1].isdigit() for cell in shown)
