"""`fedreuse gate`: is the gate's score repeatable, and does it foretell harm by reuse?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import show_json, show_lines, show_table

__all__ = ["gate_command"]


@app.command("gate", epilog="Example: fedreuse gate configs/digits.yaml --at 10 --at 20 --repeats 10")
def gate_command(
    config: Annotated[Path, typer.Argument(help="A configuration of dg_fedreuse.", show_default=False)],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Changes, such as seed=202", show_default=False),
    ] = None,
    at: Annotated[
        list[int] | None, typer.Option("--at", help="Rounds at whose start clients are looked at (default: 10).", min=2)
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", help="How often each score is taken.", min=2)] = 10,
    as_json: AsJson = False,
) -> None:
    """Take the gate's score again and again at fixed states, and train every doubtful client anyway.

    Shows how much of the score's variance lies between clients, how often the decision flips, and how well the score,
    age, drift and others foretell that reuse costs validation loss. The run itself is played as it would be, without
    a directory.
    """
    from fedreuse.report.gate_tables import gate_tables
    from fedreuse.runs.config import load
    from fedreuse.studies.gate_study import gate_study

    probes = gate_study(load(config, overrides or []), at or [10], repeats, lambda line: typer.echo(line, err=True))
    if as_json:
        show_json({"probes": [asdict(probe) for probe in probes]})
        return
    if not probes:
        show_lines("no client has a cache that could be used at these rounds; choose later ones with --at")
        return
    for table in gate_tables(probes):
        show_table(table)
