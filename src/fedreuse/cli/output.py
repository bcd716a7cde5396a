"""Output of commands: tables and paragraphs for people, JSON for programs."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from shlex import join
from textwrap import fill
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from fedreuse.cli.layout import fit
from fedreuse.core.untrusted import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fedreuse.report.tables import Table

__all__ = [
    "command_line",
    "command_words",
    "console",
    "counted",
    "program",
    "say",
    "show_json",
    "show_lines",
    "show_pairs",
    "show_prose",
    "show_table",
    "show_warning",
]

_WIDTH = 100
"""Columns where the output is no terminal and COLUMNS is not set."""


def console(stderr: bool = False) -> Console:
    """Return a console as wide as the terminal; without one, as COLUMNS says, else 100 columns."""
    stream = sys.stderr if stderr else sys.stdout
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) else _WIDTH
    return Console(stderr=stderr, width=None if stream.isatty() else width, highlight=False, soft_wrap=False)


def program() -> str:
    """Return the name of this program, or its path where the name is not on the search path."""
    started = Path(sys.argv[0])
    if started.name != "fedreuse" or shutil.which("fedreuse") is not None:
        return "fedreuse"
    here = Path.cwd()
    return str(started.relative_to(here) if started.is_relative_to(here) else started)


def command_line(*words: object) -> str:
    """Return a command of this program, quoted for a shell."""
    return join([program(), *map(str, words)])


def counted(number: int, thing: str) -> str:
    """Return a number with its noun: `1 round`, `2 rounds`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def show_json(content: Any) -> None:
    """Print JSON on standard output, and nothing else."""
    say(json.dumps(content, indent=2, allow_nan=False))


def show_lines(*lines: str) -> None:
    """Print lines that only the terminal folds, so that paths and commands can be copied."""
    for line in lines:
        say(line)


def show_prose(*paragraphs: str) -> None:
    """Print sentences, folded between words; for paths and commands see `show_lines`."""
    width = console().width
    for paragraph in paragraphs:
        say(fill(paragraph, width, break_long_words=False, break_on_hyphens=False))


def show_warning(text: str) -> None:
    """Print a marked sentence, in colour on a terminal."""
    console().print(Text(f"WARNING: {printable(text)}\n", style="bold yellow"))


def command_words(message: str) -> str:
    """Replace arguments of Python functions in a message by options of the command line."""
    return message.replace("resume=True", "--resume").replace("`out`", "--out")


def say(line: str, err: bool = False) -> None:
    """Print one line; exit quietly if the reader has closed the pipe (`| head`). Complete rounds are kept."""
    try:
        typer.echo(printable(line), err=err)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), (sys.stderr if err else sys.stdout).fileno())
        raise SystemExit(1) from None  # not an Exception, so that it is not reported as a failed run


def show_table(table: Table) -> None:
    """Print a table with its title and legend, in the form that fits the width."""
    output = console()
    table = replace(
        table,
        title=printable(table.title),
        headers=tuple(map(printable, table.headers)),
        rows=tuple(tuple(map(printable, row)) for row in table.rows),
    )
    if table.title:
        output.print(Text(table.title, style="bold"))
    for drawn in fit(table, output.width):
        output.print(drawn)
    if table.legend:
        output.print(Text(table.legend, style="dim"))
        output.print()


def show_pairs(title: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    drawn = RichTable(box=None, show_header=False)
    drawn.add_column(no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, value in pairs:
        drawn.add_row(Text(printable(name)), Text(printable(value)))
    output = console()
    output.print(Text(title, style="bold"), soft_wrap=True)
    output.print(drawn)
    output.print()
