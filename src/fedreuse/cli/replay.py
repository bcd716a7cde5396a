"""`fedreuse replay`: run an asynchronous run again in the stored order of arrivals."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from fedreuse.cli.app import RUN_FAILED, Allow, AsJson, app
from fedreuse.cli.output import show_json, show_prose

__all__ = ["replay_command"]


@app.command("replay", epilog="Example: fedreuse replay runs/deployed")
def replay_command(
    run: Annotated[Path, typer.Argument(help="A complete run of an asynchronous method.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", help="Keep the replayed run in this directory (default: it is removed).")
    ] = None,
    _allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Replay an asynchronous run to the same model, bit by bit.

    Nodes answer an asynchronous method in an order that no configuration decides. The run stores that order; the replay
    computes all clients on this machine, absorbs their replies in the same order, and compares scores and model.
    """
    from dataclasses import asdict

    from fedreuse.runs.arrivals import replay_arrivals

    with TemporaryDirectory() as folder:
        found = replay_arrivals(run, out or Path(folder) / "replayed")
    if as_json:
        show_json({**asdict(found), "is_same": found.is_same})
    else:
        where = "" if found.first_difference is None else f"; scores differ from round {found.first_difference} on"
        verdict = f"the same model, {found.digest[:16]}" if found.is_same else (
            f"ANOTHER model, {found.digest[:16]} instead of {found.original[:16]}{where}: another version of fedreuse, "
            "torch or processor, or changed files (`fedreuse audit`)"
        )  # fmt: skip
        show_prose(f"{run}: {found.arrivals} arrivals replayed, {found.lost} of them lost replies; {verdict}")
    if not found.is_same:
        raise typer.Exit(RUN_FAILED)
