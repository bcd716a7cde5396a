"""`fedreuse deploy`: a configuration on Flower, as an app folder or on nodes of this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedreuse.cli.app import Allow, AsJson, app, on_interrupt
from fedreuse.cli.dry_run import DryRun, Planned, of_study, tell_costs
from fedreuse.cli.known_keys import check_file
from fedreuse.cli.local_federation import LocalNodes, metering_of, run_configuration, run_study
from fedreuse.cli.nodes import Resident, need_flower
from fedreuse.cli.output import command_line, show_json, show_lines
from fedreuse.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fedreuse.config.run_config import RunConfig
    from fedreuse.deploy.flower.options import Deployment
    from fedreuse.studies.study import Study

__all__ = ["deploy_command"]

_OPTIONS = "deploy."
"""Prefix of the keys that change the deployment, not the run."""


@app.command("deploy", epilog="Example: fedreuse deploy configs/digits.yaml task.clients=6 rounds.cohort=6 --local 6")
def deploy_command(
    context: typer.Context,
    config: Annotated[Path, typer.Argument(help="A YAML file; with --local also a study.", show_default=False)],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...", help="Changes, also of keys such as deploy.timeout_seconds.", show_default=False
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The app folder; with --local, the run directory.")] = None,
    local: Annotated[
        int | None, typer.Option("--local", min=1, metavar="N", help="Run on N nodes of this machine, one per client.")
    ] = None,
    meter: Annotated[
        str | None, typer.Option("--meter", metavar="KIND", help="With --local: count bytes; relay or namespace.")
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option("--bandwidth", help="Of every node's uplink (--dry-run: each way), such as 10mbit.")
    ] = None,
    delay: Annotated[str | None, typer.Option("--delay", help="On every node's uplink, such as 50ms.")] = None,
    loss: Annotated[str | None, typer.Option("--loss", help="On every node's uplink, such as 1%.")] = None,
    both_ways: Annotated[
        bool, typer.Option("--both-ways", help="Apply bandwidth, delay and loss to the downlink too.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the unfinished run in the directory.")] = False,
    tls: Annotated[bool, typer.Option("--tls", help="With --local: encrypt, with a key per node.")] = False,
    dry_run: DryRun = False,
    allow: Allow = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="With --local and task at_home: a folder with clients/0, clients/1, ..."),
    ] = None,
    resident: Resident = True,
    as_json: AsJson = False,
) -> None:
    """Run a configuration on Flower nodes, or write its Flower app.

    Without --local it writes a Flower app folder, to start with `flwr run`. Methods, round loop and run directory are
    those of a simulation. deploy.timeout_seconds=60 and the like change the deployment itself; docs/how-to/deploy.md
    lists those keys.
    """
    need_flower()
    changes = overrides or []
    check_file(config, changes)
    if dry_run:
        tell_costs(_planned(config, changes), bandwidth, as_json)
        return
    metering = metering_of(meter, (bandwidth, delay, loss), both_ways)
    nodes = None if local is None else LocalNodes(local, tls, metering, data, resident)
    if _is_study(config):
        if nodes is None:
            raise ConfigError(f"{config} is a study (it has axes): --local N runs it here; an app folder holds one run")
        on_interrupt(context, "the rounds so far are safe; the same command continues from there")
        run_study(*_read_study(config, changes), out, nodes, as_json)
        return
    planned, options = _read(config, changes)
    options = replace(options, resume=resume or options.resume)
    if nodes is None:
        _write_app(planned, options, out, as_json)
        return
    place = out or Path(options.out or Path("runs") / planned.label)
    words = _given(
        {"--local": local, "--out": place, "--meter": meter, "--bandwidth": bandwidth, "--delay": delay, "--loss": loss}
        | {"--data": data, "--both-ways": both_ways, "--tls": tls, "--no-resident": not resident, "--resume": True}
    )
    granted = [word for entry in allow or [] for word in ("--allow", entry)]
    again = command_line("deploy", config, *changes, *granted, *words)
    on_interrupt(context, f"the rounds so far are safe in {place}; continue with\n  {again}")
    run_configuration(planned, replace(options, out=str(place)), nodes, as_json)


def _given(values: Mapping[str, object]) -> list[str]:
    """Return the options that were given, as words of a command line; flags have no value."""
    given = {name: value for name, value in values.items() if value not in (None, False)}
    return [word for name, value in given.items() for word in ([name] if value is True else [name, str(value)])]


def _read(config: Path, overrides: list[str]) -> tuple[RunConfig, Deployment]:
    from fedreuse.config.run_config import load, read_yaml, with_overrides
    from fedreuse.core.registry import parse
    from fedreuse.deploy.flower.options import Deployment
    from fedreuse.robustness.bounds import for_strangers

    plain = with_overrides(read_yaml(config), overrides)
    options: Deployment = parse(Deployment, plain.pop("deploy", {}), "deploy")
    return for_strangers(load(plain)), options


def _read_study(config: Path, overrides: list[str]) -> tuple[Study, Deployment]:
    from fedreuse.config.run_config import with_overrides
    from fedreuse.core.registry import parse
    from fedreuse.deploy.flower.options import Deployment
    from fedreuse.studies.study import load_study

    study = load_study(config, [change for change in overrides if not change.startswith(_OPTIONS)])
    plain = with_overrides({}, [change for change in overrides if change.startswith(_OPTIONS)])
    options: Deployment = parse(Deployment, plain.get("deploy", {}), "deploy")
    return study, options


def _planned(config: Path, overrides: list[str]) -> list[Planned]:
    if _is_study(config):
        return of_study(_read_study(config, overrides)[0])
    planned, _ = _read(config, overrides)
    return [Planned(planned.label, planned)]


def _is_study(config: Path) -> bool:
    from fedreuse.config.yaml_file import read_yaml

    return "axes" in read_yaml(config)


def _write_app(planned: RunConfig, options: Deployment, out: Path | None, as_json: bool) -> None:
    from fedreuse.deploy.flower.app_folder import write_app

    if out is None:
        raise ConfigError("choose one: --out FOLDER writes a Flower app there, --local N runs it here")
    folder = write_app(planned, options, out)
    if as_json:
        show_json({"folder": str(folder), "clients": planned.task.clients, "run_id": planned.run_id})
        return
    show_lines(
        f"Flower app for {planned.task.clients} clients in {folder}",
        "next, where the SuperLink runs (docs/how-to/deploy.md):",
        f"  flwr run {folder} <superlink> --stream",
    )
