"""`fedreuse run`: start a run, or resume it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedreuse.cli import completion
from fedreuse.cli.answer import show_answer
from fedreuse.cli.app import Allow, AsJson, app, on_interrupt
from fedreuse.cli.dry_run import Bandwidth, DevicesFile, DryRun, Planned, tell_costs
from fedreuse.cli.known_keys import check_file
from fedreuse.cli.output import command_line, counted, say, show_json, show_lines, show_pairs
from fedreuse.core.errors import RunDirectoryError, require, suggest

if TYPE_CHECKING:
    from fedreuse.report.results import Result

__all__ = ["run_command", "tell_result"]


@app.command("run", epilog="Example: fedreuse run configs/digits.yaml rounds.count=10 seed=202 --out runs/mine")
def run_command(
    context: typer.Context,
    config: Annotated[
        Path,
        typer.Argument(
            help="A YAML file, or a shipped configuration such as paper/mnist.",
            show_default=False,
            autocompletion=completion.configs,
        ),
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Changes, such as task.partition.alpha=0.1.",
            show_default=False,
            autocompletion=completion.overrides,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The run directory (default: runs/ and the run's own name).")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the unfinished run in the directory.")] = False,
    from_round: Annotated[
        int | None,
        typer.Option(
            "--from-round",
            min=1,
            help="With --resume: go back to this round, if its state was kept (see the key keep).",
        ),
    ] = None,
    dry_run: DryRun = False,
    bandwidth: Bandwidth = None,
    devices: DevicesFile = None,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Run one configuration, or resume an interrupted run.

    A resumed run gives bit-identical results. CONFIG is a YAML file; each KEY=VALUE changes one of its keys, such as
    task.partition.alpha=0.1 or method=fedprox.
    """
    changes = overrides or []
    check_file(config, changes)  # before the imports below, which take a second
    from fedreuse.config.run_config import load
    from fedreuse.report.results import plain, read_run
    from fedreuse.runs.claim import check_same
    from fedreuse.runs.keeping import go_back
    from fedreuse.runs.launch import run
    from fedreuse.runs.listeners.progress import Watcher
    from fedreuse.store.directory import RunDirectory

    planned = load(config, changes)
    if dry_run:
        tell_costs([Planned(planned.label, planned)], bandwidth, as_json, devices)
        return
    place = out or Path("runs") / planned.label
    if resume:
        _require_begun(place)
    if from_round is not None:
        require(resume, "--from-round goes back in an existing run and needs --resume too; it is", from_round)
        check_same(planned, RunDirectory.open(place))
        go_back(place, from_round)
    granted = [word for entry in allow or [] for word in ("--allow", entry)]
    again = command_line("run", config, *changes, *granted, "--out", place, "--resume")
    on_interrupt(context, f"the rounds so far are safe in {place}; continue with\n  {again}")
    size = f"{counted(planned.rounds.count, 'round')} of {counted(planned.rounds.cohort, 'client')}"
    opening = "" if as_json else f"{planned.label}: {size} into {place}"
    with Watcher(stderr=as_json, opening=opening, echo=say) as watcher:
        directory = run(planned, place, resume=resume, listeners=[watcher])
    result = read_run(directory)
    if as_json:
        show_json({**plain(result), "state": directory.state, "stop_reason": directory.stop_reason})
    elif directory.state == "stopped":
        show_lines(f"stopped after round {result.rounds}: {directory.stop_reason}", "continue with", f"  {again}")
    else:
        tell_result(result)


def _require_begun(place: Path) -> None:
    """Refuse --resume without a run: a mistyped --out must not start a new one."""
    if not (place / "config.yaml").exists():
        begun = [str(file.parent) for file in place.parent.glob("*/config.yaml")]
        near = suggest(str(place), begun) if begun else f"there is no run in {place.parent}"
        raise RunDirectoryError(f"{place} holds no run to resume; {near} (without --resume a new run starts there)")


def tell_result(result: Result) -> None:
    """Print the result of a run."""
    from fedreuse.report.tables import score, tested
    from fedreuse.runs.listeners.progress import duration

    show_answer([result])
    show_pairs(
        f"{result.variant} on {result.dataset}",
        [
            (f"test {result.metric}", tested(result)),
            (f"validation {result.metric}", score(result.validation_score, result.metric)),
            ("rounds", str(result.rounds)),
            *([("simulated time", duration(simulated))] if (simulated := result.simulated_seconds) is not None else []),
            ("time", duration(result.seconds)),
        ],
    )
    show_lines(
        f"run directory: {result.directory}",
        "next:",
        f"  {command_line('show', result.directory)}",
        f"  {command_line('export', result.directory)}",
        *([f"  {command_line('unseal', result.directory)}"] if result.is_sealed else []),
    )
