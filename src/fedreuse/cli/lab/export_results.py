"""`fedreuse lab export-results`: write the compact evidence of a study or search."""

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
        typer.Option("--admit-partial", help="Also export an incomplete study; its summary names the missing runs."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the evidence of a study as one archive, without models.

    A summary (`.md`) is written beside it. For a study the archive holds plan, test evaluations, manifests, metrics,
    ledgers and summaries; for a search its space and rule, every trial with its runs, and the frozen choice. All of it
    is audited first. `fedreuse audit`, `report`, `compare`, `show` and `figure` read the archive like the study.
    """
    from fedreuse.lab.evidence.export import export_results

    target = out or Path("results") / f"{study.resolve().name}.tar.zst"
    exported = export_results(study, target, admit_partial=admit_partial)
    if as_json:
        show_json({**asdict(exported), "path": str(exported.path)})
        return
    show_lines(
        f"{exported.path}: {counted(exported.runs, 'run')}, {exported.nbytes / 1e6:,.2f} MB; verify it with "
        f"{command_line('audit', exported.path)}"
    )
    if exported.absent:
        missing = ", ".join(exported.absent)
        show_lines(f"partial: without {counted(len(exported.absent), 'run')} of the study: {missing}")
    if exported.unverified:
        show_lines(f"unverified: {', '.join(exported.unverified)}")
