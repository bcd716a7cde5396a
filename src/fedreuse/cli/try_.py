"""`fedreuse try`: the saving and the accuracy of compressed training on a file of data, from one command."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedreuse.cli.answer import show_plot
from fedreuse.cli.app import AsJson, app, on_interrupt
from fedreuse.cli.output import command_line, say, show_json, show_lines, show_prose, show_table

if TYPE_CHECKING:
    from fedreuse.runs.listeners.progress import Watcher
    from fedreuse.studies.study import StudyRun
    from fedreuse.studies.trial import Trial

__all__ = ["try_command"]


class Predict(StrEnum):
    """A kind of label."""

    CLASSES = "classes"
    NUMBERS = "numbers"


@app.command("try", epilog="Example: fedreuse try visits.parquet --label readmitted --client hospital")
def try_command(
    context: typer.Context,
    data: Annotated[
        str,
        typer.Argument(
            help="A CSV, Parquet or npz file, a folder of data, or a dataset such as digits.", show_default=False
        ),
    ],
    label: Annotated[
        str | None, typer.Option("--label", help="Column to predict (default: label).", show_default=False)
    ] = None,
    client: Annotated[
        str | None,
        typer.Option("--client", help="Column of the client that owns a row (default: simulated).", show_default=False),
    ] = None,
    predict: Annotated[
        Predict | None, typer.Option("--predict", help="Kind of the label (default: by its values).")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="FILE.py:NAME", help="Your network (default: by the data).", show_default=False
        ),
    ] = None,
    minutes: Annotated[float, typer.Option("--minutes", help="Time for everything.")] = 20.0,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="Number of seeds (default: 5, or fewer in a short time).")
    ] = None,
    more: Annotated[bool, typer.Option("--more", help="Add Top-K with error feedback, and DG-FedReuse.")] = False,
    budget: Annotated[float, typer.Option("--budget", help="Bytes of lean as a share of dense FedAvg's.")] = 0.02,
    out: Annotated[Path, typer.Option("--out", help="The folder for everything.")] = Path("runs/try"),
    as_json: AsJson = False,
) -> None:
    """Measure savings and accuracy of compressed training on your data.

    It prepares the data (every decision is stored in preparation.json), searches a learning rate on validation data,
    and compares dense FedAvg and lean over several seeds within the minutes given. The answer is printed in sentences;
    the folder has the report, the runs, and a configuration for each. The same command continues after an interruption.
    """
    from fedreuse.runs.listeners.progress import Watcher
    from fedreuse.studies.trial import Request, try_data

    request = Request(
        data, label, client, model, minutes, seeds, more, budget, None if predict is None else predict.value
    )
    on_interrupt(context, "everything so far is safe; the same command continues from there")
    with Watcher(stderr=True, pause_seconds=10.0, echo=say) as watcher:

        def watch(number: int, planned: StudyRun) -> Watcher:
            return watcher.beside(f"[{number}]", planned.title)

        trial = try_data(request, out, lambda line: say(line, err=True), watch)
    if as_json:
        show_json(trial.to_plain())
    else:
        _show(trial, model)


def _show(trial: Trial, model: str | None) -> None:
    show_prose(*trial.sentences)
    if trial.table is not None:
        show_lines("")
        show_table(trial.table)
        show_plot(trial.results)
    place, lean = trial.directory, trial.directory / "lean.yaml"
    granted = [] if model is None or not model.partition(":")[0].endswith(".py") else ["--allow", Path(model).parent]
    show_lines(
        f"report: {trial.report}",
        *([f"data: {place / 'preparation.json'} ({len(trial.decisions)} decisions)"] if trial.decisions else []),
        f"configurations: {place / 'dense.yaml'}, {lean}, {place / 'study.yaml'}",
        "next:",
        f"  {command_line('deploy', lean, *granted, '--out', place / 'app')}",
    )
