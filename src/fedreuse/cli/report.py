"""`fedreuse report`: write an HTML page about runs that needs no network, or print its tables."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import command_words, counted, say, show_json, show_lines, show_table
from fedreuse.cli.show import parse_target
from fedreuse.core.errors import UserError

if TYPE_CHECKING:
    from fedreuse.lab.paper.protocol import Suite
    from fedreuse.report.page.page import Page

__all__ = ["report_command"]


class Form(StrEnum):
    """Format of printed tables."""

    LATEX = "latex"
    CSV = "csv"
    MD = "md"


_COMMENT = {Form.LATEX: "% ", Form.CSV: "# ", Form.MD: ""}
"""Comment sign before lines beside the tables, so that programs can still read these."""


@app.command("report", epilog="Example: fedreuse report runs/demo --out demo.html --target 85")
def report_command(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run directories, or folders of them.", show_default=False, metavar="RUN..."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="The HTML file to write (default: report.html; with --like-paper, like-paper.html)."
        ),
    ] = None,
    title: Annotated[str, typer.Option("--title", help="The heading (default: the names of the folders).")] = "",
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            help="A validation score, such as 80: show the time and bytes until it is reached; again for more.",
        ),
    ] = None,
    tables: Annotated[
        Form | None, typer.Option("--tables", help="Print the tables in this format, and write no page.")
    ] = None,
    like_paper: Annotated[
        bool,
        typer.Option(
            "--like-paper", help="Print the paper's tables beside runs of its protocol, and add them to the page."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write an HTML report of runs.

    It shows the frontier, trajectories, bytes, gate, inference and cost of complete and incomplete runs. The page is
    one file and needs no network: open it by double click, send it, print it. Tables can be saved as CSV and LaTeX,
    every figure as SVG and PNG. A gate study in the folder of the runs (`fedreuse lab gate RUN --out FOLDER`) adds
    reliability and validity of the gate's score.
    """
    from fedreuse.lab.sections import lab_sections, planned_targets
    from fedreuse.report.gather import gather
    from fedreuse.report.page.page import page_of
    from fedreuse.report.table_forms import FORMS

    metrics = {result.metric for result in gather(runs)} if target else set()
    targets = [parse_target(text, metrics) for text in target or ()]
    sections = lab_sections(_suites() if like_paper else ())
    targets = list(dict.fromkeys([*planned_targets(runs), *targets]))
    page = page_of(runs, title, targets, sections=sections)
    if tables is not None:
        for table in page.tables:
            head = f"# {table.title}\n" if tables is Form.CSV else ""
            say(head + FORMS[tables.value](table))
        notes = [*page.shown.left_out, *page.notes]
        show_lines(*(f"{_COMMENT[tables]}{command_words(line)}" for line in notes))
        return
    if like_paper and not as_json:
        for table in (table for section in page.sections if section.key == "paper" for table in section.tables):
            show_table(table)
    out = out or Path("like-paper.html" if like_paper else "report.html")
    size = _write(page, out)
    if as_json:
        show_json({"report": str(out), "bytes": size, "runs": len(page.shown.results)})
    else:
        show_lines(
            f"report: {out} ({size / 1e6:.1f} MB, {counted(len(page.shown.results), 'run')}); open it in a browser"
        )


def _suites() -> list[Suite]:
    from fedreuse.lab.paper.suites import paper_suites  # imports torch, which other reports do not need

    return paper_suites()


def _write(page: Page, out: Path) -> int:
    from fedreuse.core.files import write_whole
    from fedreuse.report.page.html import render

    content = render(page).encode()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(out, content)
    except OSError as error:
        raise UserError(f"{out} cannot be written ({error}); choose another file with --out") from None
    return len(content)
