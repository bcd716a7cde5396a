"""`fedreuse lab gate`: reliability and validity of the gate's score."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedreuse.cli.app import Allow, AsJson
from fedreuse.cli.lab.app import lab_app
from fedreuse.cli.output import say, show_json, show_lines, show_table

if TYPE_CHECKING:
    from fedreuse.config.run_config import RunConfig
    from fedreuse.store.directory import RunDirectory

__all__ = ["gate_command"]


@lab_app.command("gate", epilog="Example: fedreuse lab gate configs/digits.yaml --at 10 --at 20 --out runs/gate")
def gate_command(
    config: Annotated[
        Path,
        typer.Argument(
            help="A configuration of dg_fedreuse, a run directory, a folder that --out wrote, or a folder of those.",
            show_default=False,
        ),
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Changes, such as seed=202.", show_default=False),
    ] = None,
    at: Annotated[
        list[int] | None,
        typer.Option("--at", help="A round before which the gate is probed; again for more (default: 10).", min=2),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", help="Number of times each score is computed.", min=2)] = 10,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A folder for the probes and their figure.", show_default=False),
    ] = None,
    _allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Measure how repeatable the gate's score is, and what it predicts.

    The score is computed repeatedly at fixed states, and every client that could reuse its update trains as well. The
    tables show the share of the score's variance between clients, how often the decision flips, and how well score,
    age, drift and others predict that reuse costs validation loss. The run itself leaves no directory. A stored run is
    repeated, from a kept state where one is early enough, and compared round by round with its records. A folder that
    --out wrote is shown again; several of them in one folder, such as of other seeds, are shown together.
    """
    from fedreuse.config.run_config import load
    from fedreuse.lab.gate.figure import gate_figure
    from fedreuse.lab.gate.probe import read_gates
    from fedreuse.lab.gate.study import gate_study, write_probes
    from fedreuse.lab.gate.tables import gate_tables
    from fedreuse.store.archive import opened
    from fedreuse.store.directory import RunDirectory
    from fedreuse.store.provenance import provenance

    if records := read_gates(config):
        probes, name = [probe for record in records for probe in record.probes], config.name
    else:
        run = RunDirectory.open(config) if opened(config).is_dir() else None
        if run is not None:
            run.verify()
        settings = load(config if run is None else run.file("config.yaml"), overrides or [])
        origin = provenance()
        probes = gate_study(
            settings, at or [10], repeats, _show_progress, None if run is None else _comparable(run, settings)
        )
        name = f"{config.stem}, seed {settings.seed}"
        if out is not None:
            write_probes(out, settings, probes, origin)
    if out is not None and probes:
        figure = gate_figure(probes, out / "gate.svg", f"The gate of DG-FedReuse: {name}")
        _show_progress(f"figure: {figure}")
    if as_json:
        show_json({"probes": [asdict(probe) for probe in probes]})
        return
    if not probes:
        show_lines("no client has a cached update at these rounds; choose later ones with --at")
        return
    for table in gate_tables(probes):
        show_table(table)


def _comparable(run: RunDirectory, settings: RunConfig) -> RunDirectory | None:
    """Return the stored run if it can be compared: same configuration, and at least one round."""
    from fedreuse.config.run_config import load

    if settings.run_id != load(run.file("config.yaml")).run_id:
        _show_progress(f"{run.path}: the changes make it another run, which starts at round 1 and is not compared")
        return None
    return run if run.has_rounds else None


def _show_progress(line: str) -> None:
    say(line, err=True)
