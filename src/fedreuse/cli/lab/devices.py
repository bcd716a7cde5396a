"""`fedreuse lab devices`: write an example trace of devices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedreuse.cli.app import AsJson
from fedreuse.cli.lab.app import lab_app
from fedreuse.cli.output import show_json, show_lines

__all__ = ["devices_command"]


@lab_app.command("devices", epilog="Example: fedreuse lab devices --clients 20 --out configs/devices/day.csv")
def devices_command(
    out: Annotated[Path, typer.Option("--out", help="The CSV file to write.")],
    clients: Annotated[int, typer.Option("--clients", min=1, help="Number of clients.")] = 20,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the draws.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Write an example trace of devices over one day.

    The file is for `devices: {name: trace, file: FILE, period: 86400}`.
    """
    from fedreuse.lab.device_trace import DAY, SOURCE, write_example

    rows = write_example(out, clients, seed)
    if as_json:
        show_json({"path": str(out), "clients": clients, "rows": rows, "period": DAY, "source": SOURCE})
        return
    show_lines(
        f"{out}: {rows} rows of {clients} clients; means from {SOURCE}",
        f"use it with devices: {{name: trace, file: {out}, latency: 40ms, period: {DAY}}}",
    )
