"""`fedreuse tune`: search for settings on validation data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedreuse.cli.app import Allow, AsJson, app, on_interrupt
from fedreuse.cli.dry_run import Bandwidth, DevicesFile, DryRun, of_space, tell_costs
from fedreuse.cli.known_keys import check_file
from fedreuse.cli.output import command_line, say, show_json, show_lines, show_table
from fedreuse.core.errors import ConfigError

if TYPE_CHECKING:
    from fedreuse.report.tables import Table
    from fedreuse.studies.tuning.outcome import Outcome
    from fedreuse.studies.tuning.space import Space

__all__ = ["tune_command"]


@app.command("tune", epilog="Example: fedreuse tune configs/tune/digits/gate.yaml --out runs/gate")
def tune_command(
    context: typer.Context,
    space: Annotated[Path, typer.Argument(help="A search space.", show_default=False)],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Changes to the base, such as rounds.count=10, or to the space, such as tune.trials=4.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder of the search (default: runs/ and the space's name).")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", min=1, help="Number of simultaneous runs (default: one per core).", show_default=False),
    ] = None,
    dry_run: DryRun = False,
    bandwidth: Bandwidth = None,
    devices: DevicesFile = None,
    _allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Search for settings with Optuna, on validation data only.

    It uses development seeds, and the test split stays sealed. SPACE has a base, dimensions, seeds, objectives,
    constraints and a selection rule. The same command continues a search that was stopped, with the same trials. The
    outcome is `outcome.json` and `chosen.yaml`.
    """
    check_file(space, overrides or [])
    try:
        from fedreuse.studies.tuning.search import search
    except ModuleNotFoundError as error:
        raise ConfigError(f"tuning needs {error.name}; install it with `pip install 'fedreuse[tune]'`") from None
    from fedreuse.studies.tuning.outcome import conclude
    from fedreuse.studies.tuning.space import load_space

    planned = load_space(space, overrides or [])
    if dry_run:
        tell_costs(of_space(planned), bandwidth, as_json, devices)
        return
    place = out or Path("runs") / planned.name
    on_interrupt(context, "the trials so far are safe; the same command continues from there")
    trials = search(planned, place, jobs or len(os.sched_getaffinity(0)), lambda line: say(line, err=as_json))
    outcome = conclude(planned, trials, place)
    if as_json:
        show_json({"space": planned.name, "directory": str(place), **outcome.plain()})
        return
    show_table(_table(planned, outcome))
    show_lines("next:", *(f"  {command_line('run', file)}" for file in outcome.configurations))


def _table(space: Space, outcome: Outcome) -> Table:
    from fedreuse.report.tables import Table

    names = [dimension.name for dimension in space.dimensions]
    keys = [dimension.key for dimension in space.dimensions]
    feasible, kept = space.rule.feasible(outcome.trials), space.rule.retentions(outcome.trials)
    rows = tuple(
        (
            f"{trial.number}{' *' if trial in outcome.chosen else ''}",
            *(f"{trial.params.get(key, '-')}"[:9] for key in keys),
            *(f"{number:.6g}" for number in trial.values or ["-"] * 0),
            *("-" for _ in range(len(space.objectives) - len(trial.values))),
            *([f"{kept[trial.number]:.2%}" if trial.number in kept else "-"] if kept else []),
            trial.state if trial in feasible or trial.state != "complete" else "infeasible",
        )
        for trial in outcome.trials
    )
    headers = ("trial", *names, *(measure.metric for measure in space.objectives), *(["retention"] if kept else []))
    legend = f"* chosen by the rule {space.rule.name}."
    if kept:
        legend += (
            f" Retention: score as a share of the reference's, in the worst cell; at least {space.rule.share:.0%}."
        )
    return Table(f"Trials of {space.name}", (*headers, "state"), rows, legend)
