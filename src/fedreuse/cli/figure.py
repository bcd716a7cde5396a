"""`fedreuse figure`: draw one run, or several for comparison, as png, svg or pdf."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import command_words, show_json, show_lines
from fedreuse.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedreuse.report.results import Result

__all__ = ["figure_command"]


@app.command("figure", epilog="Example: fedreuse figure runs/demo --only Top-K --out demo.svg")
def figure_command(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run directories, or folders of them.", show_default=False, metavar="RUN..."),
    ],
    out: Annotated[Path, typer.Option("--out", help="The file; its suffix gives the format: png, svg or pdf.")] = Path(
        "figure.png"
    ),
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Only variants whose name contains this text; again for more.", show_default=False),
    ] = None,
    boundary: Annotated[str, typer.Option("--boundary", help="The boundary at which bytes are counted.")] = "messages",
    title: Annotated[str, typer.Option("--title", help="The first line above the panels.")] = "",
    as_json: AsJson = False,
) -> None:
    """Draw runs: score over bytes and rounds.

    One run alone is drawn with its score, bytes and clients by round. Several are drawn as score over bytes and over
    rounds; lines are means over seeds, and more than eight variants are spread over several rows of panels.
    """
    from fedreuse.report.figures import accuracy_figure
    from fedreuse.report.gather import admitted, gather
    from fedreuse.report.results import partial_notes
    from fedreuse.report.run_figure import run_figure

    readable, remarks = admitted(gather(runs))
    left_out = [*remarks, *partial_notes(runs)]
    results = chosen(readable, only or ())
    if len(results) == 1:
        path = run_figure(results[0], out, boundary, title)
    else:
        path = accuracy_figure(results, out, boundary, title)
    if as_json:
        show_json({"figure": str(path), "runs": [str(result.directory) for result in results], "left_out": left_out})
    else:
        show_lines(f"figure: {path}", *map(command_words, left_out))


def chosen(results: Sequence[Result], only: Sequence[str]) -> list[Result]:
    """Return the runs whose variant contains one of these texts; all runs without a text."""
    matching = [result for result in results if not only or any(text in result.variant for text in only)]
    if not matching:
        known = ", ".join(dict.fromkeys(result.variant for result in results))
        raise UserError(f"--only {' --only '.join(only)}: no variant contains that; known: {known}")
    return matching
