"""The answer that commands print first: sentences, then one table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from fedreuse.cli.output import show_lines, show_prose, show_table

if TYPE_CHECKING:
    from fedreuse.report.results import Result

__all__ = ["Full", "show_answer", "show_plot"]

Full = Annotated[
    bool, typer.Option("--full", help="Show every table: all byte boundaries, links, work, memory, intervals.")
]


def show_plot(results: Sequence[Result]) -> None:
    """Draw score over bytes if the output is a terminal."""
    if not sys.stdout.isatty():
        return
    from rich.console import Console

    from fedreuse.cli.plot import plot

    console = Console(highlight=False)
    if (drawn := plot(results, console.width)) is not None:
        console.print(drawn)


def show_answer(results: Sequence[Result]) -> None:
    """Print what each variant sends and scores beside the reference; nothing without a complete run."""
    from fedreuse.report.answer import answer, answer_table, answers
    from fedreuse.report.tables import openings_line

    found = answers(results)
    table = answer_table(results)
    if table is None:
        return
    show_lines("")
    for one in found:
        show_prose(answer(one).replace(" %", "\N{NO-BREAK SPACE}%"), "")
    show_lines("")
    show_table(table)
    show_plot(results)
    if evaluated := openings_line(results):
        show_prose(evaluated, "")
