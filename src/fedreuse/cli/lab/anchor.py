"""`fedreuse lab anchor`: write the head of a plan's log to a file that is kept elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedreuse.cli.app import AsJson
from fedreuse.cli.lab.app import lab_app
from fedreuse.cli.output import command_line, show_json, show_lines

__all__ = ["anchor_command"]


@lab_app.command("anchor", epilog="Example: fedreuse lab anchor runs/confirmed --out confirmed.anchor.json")
def anchor_command(
    study: Annotated[Path, typer.Argument(help="The folder of a study with a plan.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="The file to write, to be kept elsewhere.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Write the head of a plan's log to a small file.

    Keep it where you cannot change it unnoticed: send it to a colleague, publish it, let a service sign it with the
    time. `fedreuse audit --anchor` later shows that the plan was there by then. A git commit of the study's folder does
    the same, and `audit` finds it.
    """
    from fedreuse.lab.evidence.anchors import write_anchor

    head = write_anchor(study, out)
    if as_json:
        show_json({"head": head, "path": str(out)})
    else:
        show_lines(f"{out}: head {head}; verify it with {command_line('audit', study)} --anchor {out}")
