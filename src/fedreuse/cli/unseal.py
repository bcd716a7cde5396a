"""`fedreuse unseal`: evaluate a sealed run on the test split, once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedreuse.cli.app import Allow, AsJson, app
from fedreuse.cli.output import show_json, show_prose, show_table

__all__ = ["unseal_command"]


@app.command("unseal", epilog="Example: fedreuse unseal runs/mine")
def unseal_command(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Complete sealed runs, or folders of them.", show_default=False, metavar="RUN..."),
    ],
    _allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate complete runs on their sealed test split, once.

    Sealed runs have `test: sealed`. Every opening is recorded in the run and in its study, and tables give their
    number. Choose runs to open by their validation scores; runs that were tested already are refused.
    """
    from fedreuse.report.results import plain, read_run
    from fedreuse.report.tables import runs_table
    from fedreuse.runs.unsealing import check_sealed, unseal
    from fedreuse.store.directory import find_runs, no_runs
    from fedreuse.store.openings import evaluations_of

    directories = [directory for place in runs for directory in find_runs(place)]
    if not directories:
        raise no_runs(*runs)
    for directory in directories:
        check_sealed(directory)  # open all of them or none
    results = [read_run(unseal(directory.path)) for directory in directories]
    if as_json:
        show_json([plain(result) for result in results])
        return
    show_table(runs_table(results))
    show_prose(evaluations_of([result.directory for result in results]))
