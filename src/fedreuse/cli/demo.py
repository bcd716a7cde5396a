"""`fedreuse demo`: five methods on embedded data, compared in a table and a figure in about two minutes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedreuse.cli.app import AsJson, app, on_interrupt
from fedreuse.cli.compare import Jobs, finish, run_all
from fedreuse.cli.output import command_line, say, show_lines
from fedreuse.core.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedreuse.report.results import Result
    from fedreuse.studies.study import Study

__all__ = ["demo_command"]

LOWEST_SCORE = 0.85


@app.command("demo", epilog="Example: fedreuse demo")
def demo_command(
    context: typer.Context,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Changes to all runs, such as seed=303.", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The folder of the runs.")] = Path("runs/demo"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the demo's earlier runs and start over.")] = False,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Compare five methods on handwritten digits in two minutes.

    The methods: dense FedAvg, Top-K, Top-K with error feedback, DG-FedReuse and lean. The data comes with scikit-learn,
    so nothing is downloaded. All five share partition, cohorts and random streams. Complete runs are kept, unless
    --fresh is given.
    """
    from fedreuse.studies.study import load_study

    study = load_study("demo", overrides or [])
    if fresh:
        _delete_runs(study, out)
    on_interrupt(context, "the rounds so far are safe; `fedreuse demo` continues from there")
    results = finish(study, out, run_all(study, out, as_json, jobs=jobs), as_json)
    if overrides:
        say(
            f"the demo's lowest accuracy ({LOWEST_SCORE:.0%}) was not checked, because {overrides[0]} changes the runs",
            err=True,
        )
    else:
        _require_learnt(results)
    if not as_json:
        _show_next_steps(results)


def _delete_runs(study: Study, out: Path) -> None:
    """Delete run directories of the demo, also those of earlier overrides; refuse if one is in use."""
    from fedreuse.store.directory import RunDirectory
    from fedreuse.store.study_file import STUDY_FILE, read_study

    known = read_study(out) if (out / STUDY_FILE).exists() else {}
    earlier = known["runs"] if known.get("study") == study.name else []
    for folder in dict.fromkeys([*(planned.folder for planned in study.runs), *(entry["folder"] for entry in earlier)]):
        place = out / folder
        if (place / "config.yaml").exists():
            directory = RunDirectory(place)
            directory.lock()
            shutil.rmtree(place)
            directory.release()


def _require_learnt(results: Sequence[Result]) -> None:
    short = [
        f"{result.variant} (seed {result.seed}) {result.test_score:.1%}"
        for result in results
        if result.test_score is None or not result.test_score >= LOWEST_SCORE
    ]
    if short:
        raise RunError(f"the demo must reach a test accuracy of {LOWEST_SCORE:.0%}, but {', '.join(short)} did not")


def _show_next_steps(results: Sequence[Result]) -> None:
    last, fetch = results[-1].directory, command_line("data", "fetch", "fashion_mnist")
    show_lines(
        "",
        "Next steps:",
        f"  {command_line('show', last)}",
        f"  {command_line('export', last)}",
        f"  {command_line('describe', 'dg_fedreuse')}",
        f"  {command_line('run', 'configs/digits.yaml', 'method=fedprox')}",
        f"  {fetch} && {command_line('run', 'configs/paper/fashion_mnist.yaml')}",
    )
