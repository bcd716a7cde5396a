"""`fedreuse lab gate`: is the gate's score repeatable, and does it foretell harm by reuse?"""

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
        typer.Argument(metavar="[KEY=VALUE]...", help="Changes, such as seed=202", show_default=False),
    ] = None,
    at: Annotated[
        list[int] | None, typer.Option("--at", help="Rounds before which the gate is probed (default: 10).", min=2)
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", help="How often each score is taken.", min=2)] = 10,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A folder for the probes and a figure of them.", show_default=False),
    ] = None,
    _allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Take the gate's score again and again at fixed states, and train every doubtful client anyway.

    Shows how much of the score's variance lies between clients, how often the decision flips, and how well the score,
    age, drift and others foretell that reuse costs validation loss. The run itself is played as it would be, without
    a directory. A stored run is played again, from a kept state where one is early enough, and compared round by round
    with what it recorded. A folder that --out wrote is shown again, and several of them in one folder (of other seeds,
    say) are shown together.
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
        if not all(record.is_checked for record in records):
            _tell(f"unverified: what lies in {config} was written before gate studies had checksums")
    else:
        run = RunDirectory.open(config) if opened(config).is_dir() else None
        if run is not None:
            run.verify()
        settings = load(config if run is None else run.file("config.yaml"), overrides or [])
        origin = provenance()
        probes = gate_study(settings, at or [10], repeats, _tell, None if run is None else _comparable(run, settings))
        name = f"{config.stem}, seed {settings.seed}"
        if out is not None:
            write_probes(out, settings, probes, origin)
    if out is not None and probes:
        figure = gate_figure(probes, out / "gate.svg", f"The gate of DG-FedReuse: {name}")
        _tell(f"figure: {figure}")
    if as_json:
        show_json({"probes": [asdict(probe) for probe in probes]})
        return
    if not probes:
        show_lines("no client has a cache that could be used at these rounds; choose later ones with --at")
        return
    for table in gate_tables(probes):
        show_table(table)


def _comparable(run: RunDirectory, settings: RunConfig) -> RunDirectory | None:
    """The stored run, if it is what is played: overrides may make it another one, and it may have no round yet."""
    from fedreuse.config.run_config import load

    if settings.run_id != load(run.file("config.yaml")).run_id:
        _tell(f"{run.path}: with these changes it is another run; it is played from the start, and compared with none")
        return None
    return run if run.has_rounds else None


def _tell(line: str) -> None:
    say(line, err=True)
