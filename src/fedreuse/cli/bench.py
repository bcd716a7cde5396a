"""`fedreuse bench`: how fast and how large things are here, measured side by side, into a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import show_json, show_lines, show_table
from fedreuse.errors import require

if TYPE_CHECKING:
    from fedreuse.bench.results import Row
    from fedreuse.report.tables import Table

__all__ = ["bench_app", "finish"]

bench_app = typer.Typer(
    no_args_is_help=True,
    help="Measure speed, size and memory, side by side in one run; nothing else should run meanwhile.",
    epilog="Example: fedreuse bench engine --rounds 3",
)
app.add_typer(bench_app, name="bench")

Out = Annotated[Path | None, typer.Option("--out", help="The results file (default: bench/ and the bench's name).")]
Rounds = Annotated[int, typer.Option("--rounds", help="Rounds that count; a ratio is taken in each.", min=1)]
Cores = Annotated[int, typer.Option("--cores", help="Cores that everything stays on.", min=1)]
Workload = Annotated[str, typer.Option("--workload", help="reference, resnet18, or tiny.")]


@bench_app.command("engine", epilog="Example: fedreuse bench engine --workload resnet18 --rounds 2")
def engine_command(
    workload: Workload = "reference", rounds: Rounds = 5, cores: Cores = 2, out: Out = None, as_json: AsJson = False
) -> None:
    """Time the engine beside a bare PyTorch loop with the same local SGD; each round is played by all in turn."""
    from fedreuse.bench import engine
    from fedreuse.bench.turns import keep_cores
    from fedreuse.bench.workload import WORKLOADS

    require(workload in WORKLOADS, f"--workload must be one of {', '.join(WORKLOADS)}", workload)
    settings = {"workload": workload, "rounds": rounds, "cores": keep_cores(cores)}
    rows = engine.run(workload, rounds, tell=_tell)
    name = "engine" if workload == "reference" else f"engine-{workload}"
    finish(name, settings, rows, engine.tables, out, as_json)


def finish(
    name: str,
    settings: Mapping[str, Any],
    rows: Sequence[Row],
    tables: Callable[[Sequence[Row]], Sequence[Table]],
    out: Path | None,
    as_json: bool,
) -> None:
    """Write the results with their provenance, and show them."""
    from dataclasses import asdict

    from fedreuse.bench.results import made_now

    results = made_now(name, settings, rows)
    path = results.write(out or Path("bench") / f"{name}.json")
    if as_json:
        show_json(asdict(results))
        return
    for table in tables(rows):
        show_table(table)
    show_lines(f"results: {path}")


def _tell(line: str) -> None:
    typer.echo(line, err=True)
