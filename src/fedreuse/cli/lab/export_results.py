"""`fedreuse lab export-results`: the compact evidence of a study or of a search."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fedreuse.cli.app import AsJson
from fedreuse.cli.lab.app import lab_app
from fedreuse.cli.output import command_line, counted, show_json, show_lines

__all__ = ["export_results_command"]


@lab_app.command("export-results", epilog="Example: fedreuse lab export-results runs/demo --out results/demo.tar.zst")
def export_results_command(
    study: Annotated[
        Path, typer.Argument(help="The folder of a study or of a search, or a folder of these.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="The archive to write (default: results/NAME.tar.zst), or a folder.")
    ] = None,
    admit_partial: Annotated[
        bool,
        typer.Option("--admit-partial", help="Export a study that is not complete, too; it says what it lacks."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the evidence of a study as one archive, without models, and a summary (`.md`) beside it.

    Of a study: plan, test evaluations, manifests, metrics, ledgers, summaries. Of a search: its space and rule, every
    trial with its runs, and the frozen choice. Everything is audited first. `fedreuse audit`, `report`, `compare`,
    `show` and `figure` read the archive as they read the study.
    """
    from fedreuse.lab.evidence.export import export_results

    target = out or Path("results") / f"{study.resolve().name}.tar.zst"
    made = export_results(study, target, admit_partial=admit_partial)
    if as_json:
        show_json({**asdict(made), "path": str(made.path)})
        return
    show_lines(
        f"{made.path}: {counted(made.runs, 'run')}, {made.nbytes / 1e6:,.2f} MB; check it with "
        f"{command_line('audit', made.path)}"
    )
    if made.absent:
        show_lines(f"partial: without {counted(len(made.absent), 'run')} of the study: {', '.join(made.absent)}")
    if made.unverified:
        show_lines(f"unverified: {', '.join(made.unverified)}")
