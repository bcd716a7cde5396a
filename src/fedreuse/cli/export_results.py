"""`fedreuse export-results`: the compact evidence of a study."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import command_line, counted, show_json, show_lines

__all__ = ["export_results_command"]


@app.command("export-results", epilog="Example: fedreuse export-results runs/demo --out results/demo")
def export_results_command(
    study: Annotated[Path, typer.Argument(help="The folder of a study.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder to write (default: results/ and the name).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Pack what stands behind a study's tables, without models: plan, openings, manifests, metrics, ledgers, summaries.

    The study is audited first. `fedreuse audit`, `compare` and `show` read the export as they read the study.
    """
    from fedreuse.studies.evidence import export_results

    made = export_results(study, out or Path("results") / study.resolve().name)
    if as_json:
        show_json({**asdict(made), "path": str(made.path)})
        return
    show_lines(
        f"{made.path}: {counted(made.runs, 'run')}, {made.nbytes / 1e6:,.2f} MB; check it with "
        f"{command_line('audit', made.path)}"
    )
    if made.unverified:
        show_lines(f"unverified: {', '.join(made.unverified)}")
