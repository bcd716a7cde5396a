"""`fedreuse lab convergence`: every method on strongly convex quadratics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedreuse.cli.app import AsJson
from fedreuse.cli.lab.app import lab_app
from fedreuse.cli.output import say, show_json, show_table

__all__ = ["convergence_command"]

_BUDGETS = ((0.05, "per_client"), (0.01, "per_client"), (0.02, "shared"))


@lab_app.command("convergence", epilog="Example: fedreuse lab convergence --method lean --method fed_ef")
def convergence_command(
    names: Annotated[
        list[str] | None, typer.Option("--method", help="A method; again for more (default: all, and lean at size).")
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", help="Rounds of each method.", min=10)] = 400,
    out: Annotated[Path | None, typer.Option("--out", help="A JSON file for the results.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Show where methods converge to on heterogeneous quadratics.

    Distances to the minimum are relative to the initial model's, over the middle and the last fifth of the rounds.
    """
    from dataclasses import asdict

    from fedreuse.lab.bench.results import made_now
    from fedreuse.lab.convergence import convergence_table, lean_rows, method_rows

    found = [asdict(row) for row in method_rows(names, rounds)]
    large = [] if names else list(lean_rows(_BUDGETS))
    if out is not None:
        made_now("convergence", {"rounds": rounds, "large": large}, found).write(out)
        say(f"wrote {out}", err=True)
    if as_json:
        show_json({"methods": found, "lean": large})
        return
    show_table(convergence_table(found))
