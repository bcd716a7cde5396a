"""How things are shown: tables and paragraphs for people, JSON for machines."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from shlex import join
from textwrap import fill
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from fedreuse.cli.layout import fit

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


def console(stderr: bool = False) -> Console:
    """Where people look; when the output is not a terminal, as wide as COLUMNS says, else 100 columns."""
    stream = sys.stderr if stderr else sys.stdout
    told = os.environ.get("COLUMNS", "")
    width = int(told) if told.isdecimal() and int(told) else _WIDTH
    return Console(stderr=stderr, width=None if stream.isatty() else width, highlight=False, soft_wrap=False)


def program() -> str:
    """What to type to call this program: its name, or its path when the name is not on the search path."""
    started = Path(sys.argv[0])
    if started.name != "fedreuse" or shutil.which("fedreuse") is not None:
        return "fedreuse"
    here = Path.cwd()
    return str(started.relative_to(here) if started.is_relative_to(here) else started)


def command_line(*words: object) -> str:
    """A command of this program as it can be copied into a shell, whatever stands in the paths."""
    return join([program(), *map(str, words)])


def counted(number: int, thing: str) -> str:
    """A number of things: `1 round`, `2 rounds`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def show_json(content: Any) -> None:
    """Print JSON on standard output, and nothing else."""
    say(json.dumps(content, indent=2, allow_nan=False))


def show_lines(*lines: str) -> None:
    """Paragraphs, folded by the terminal alone, so that paths and commands can be copied."""
    for line in lines:
        say(line)


def show_prose(*paragraphs: str) -> None:
    """Sentences, folded between words at the width; for paths and commands see `show_lines`."""
    width = console().width
    for paragraph in paragraphs:
        say(fill(paragraph, width, break_long_words=False, break_on_hyphens=False))


def show_warning(text: str) -> None:
    """A sentence that nobody should miss: marked, and in colour on a terminal."""
    console().print(Text(f"WARNING: {text}\n", style="bold yellow"))


def command_words(message: str) -> str:
    """A message that names arguments of Python's functions, with the options of the command line instead."""
    return message.replace("resume=True", "--resume").replace("`out`", "--out")


def say(line: str, err: bool = False) -> None:
    """One line; if nobody reads any more (`| head`), end quietly: complete rounds are safe, as after Ctrl-C."""
    try:
        typer.echo(line, err=err)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), (sys.stderr if err else sys.stdout).fileno())
        raise SystemExit(1) from None  # no Exception: nobody on the way takes it for a failure of the run


def show_table(table: Table) -> None:
    """A table with its title and legend, in the form that fits the width."""
    place = console()
    if table.title:
        place.print(Text(table.title, style="bold"))
    for drawn in fit(table, place.width):
        place.print(drawn)
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
