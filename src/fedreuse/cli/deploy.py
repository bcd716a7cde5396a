"""`fedreuse deploy`: a configuration on Flower, as an app folder or on a federation of this machine."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Annotated

import typer

from fedreuse.cli.app import Allow, AsJson, app, on_interrupt
from fedreuse.cli.dry_run import DryRun, Planned, of_study, tell_costs
from fedreuse.cli.output import command_line, counted, program, say, show_json, show_lines
from fedreuse.cli.run import tell_result
from fedreuse.core.errors import ConfigError, UserError

if TYPE_CHECKING:
    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.listener import Listener
    from fedreuse.deploy.flower.options import Deployment
    from fedreuse.deploy.local.federation import LocalFederation
    from fedreuse.deploy.local.run import Form
    from fedreuse.deploy.meter.metered import Metering
    from fedreuse.store.directory import RunDirectory

__all__ = ["deploy_command", "superlink_command", "supernode_command"]

_OPTIONS = "deploy."
Insecure = Annotated[
    int,
    typer.Option(
        "--insecure", count=True, help="Without encryption; give it twice to allow that beyond loopback.", metavar=""
    ),
]
Folder = Annotated[
    Path | None, typer.Option("--authority", help="Certificates and keys (see deploy --make-authority).")
]

Resident = Annotated[
    bool, typer.Option(help="Keep torch and data in one worker per node, instead of loading them for every message.")
]


@app.command("deploy", epilog="Example: fedreuse deploy configs/digits.yaml task.clients=6 rounds.cohort=6 --local 6")
def deploy_command(
    context: typer.Context,
    config: Annotated[Path | None, typer.Argument(help="A YAML file.", show_default=False)] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Changes, also of deploy.KEY", show_default=False),
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
        bool, typer.Option("--both-ways", help="Bandwidth, delay and loss hold for the downlink, too.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in the directory stopped.")] = False,
    tls: Annotated[bool, typer.Option("--tls", help="With --local: encrypted, and every node proves its key.")] = False,
    authority: Annotated[
        Path | None,
        typer.Option("--make-authority", metavar="FOLDER", help="Make certificates and keys for tests, then end."),
    ] = None,
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="How many node keys the authority makes.")] = 10,
    host: Annotated[
        list[str] | None, typer.Option("--host", help="The SuperLink's names (default: 127.0.0.1, localhost).")
    ] = None,
    dry_run: DryRun = False,
    allow: Allow = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="With --local and task at_home: a folder with clients/0, clients/1, ..."),
    ] = None,
    resident: Resident = True,
    as_json: AsJson = False,
) -> None:
    """Deploy a configuration on Flower: the same methods, on real nodes, with the same run directory.

    Without --local it writes a Flower app folder, to start with `flwr run`. deploy.timeout_seconds=60 and the like
    change the deployment itself; docs/how-to/deploy.md lists those keys.
    """
    _need_flower()
    if authority is not None:
        _make_authority(authority, nodes, host)
        return
    if config is None:
        raise ConfigError("name a configuration: fedreuse deploy CONFIG --out FOLDER, or --local N")
    if dry_run:
        _tell_costs(config, overrides or [], bandwidth, as_json)
        return
    from fedreuse.deploy.local.run import Form

    metering = _metering(meter, (bandwidth, delay, loss), both_ways)
    if _is_study(config):
        on_interrupt(context, "the rounds so far are safe; the same command goes on from there")
        _run_study(config, overrides or [], out, (local, tls, Form(metering=metering, is_resident=resident)), as_json)
        return
    planned, options = _read(config, overrides or [])
    options = replace(options, resume=resume or options.resume)
    if local is None:
        _write(planned, options, out)
        return
    place = out or Path(options.out or Path("runs") / planned.label)
    words = [str(config), *(overrides or []), "--local", str(local), "--out", str(place), *(["--tls"] if tls else [])]
    words += [word for entry in allow or [] for word in ("--allow", entry)] + ([] if resident else ["--no-resident"])
    on_interrupt(
        context, f"the rounds so far are safe in {place}; go on with\n  {join([program(), 'deploy', *words])} --resume"
    )
    form = Form(metering=metering, data=_own_folders(data, local), is_resident=resident)
    _run(planned, replace(options, out=str(place)), (local, tls, form), as_json)


@app.command("superlink", epilog="Example: fedreuse superlink --authority certificates --host 0.0.0.0")
def superlink_command(
    authority: Folder = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port to listen on.")] = 8000,
    _allow: Allow = None,
    insecure: Insecure = 0,
    as_json: AsJson = False,
) -> None:
    """Start Flower's SuperLink, offline and with an authority's certificate; nodes must be registered.

    With --json one object says where it listens; what Flower logs afterwards goes to standard error.
    """
    _need_flower()
    from fedreuse.deploy.flower import commands
    from fedreuse.deploy.flower.authority import Authority

    if authority is None:
        commands.check_insecure(host, insecure)
    command = commands.superlink_command(host, port, None if authority is None else Authority(authority))
    if as_json:
        show_json({"address": f"{host}:{port}", "is_encrypted": authority is not None})
    _become(command)


@app.command("supernode", epilog="Example: fedreuse supernode server.example:8000 --authority certificates")
def supernode_command(
    superlink: Annotated[str, typer.Argument(help="HOST:PORT of the SuperLink.", show_default=False)],
    client: Annotated[
        int | None,
        typer.Argument(
            help="The number of this node's client, from 0, where no roster at the server says so.",
            min=0,
            show_default=False,
        ),
    ] = None,
    authority: Folder = None,
    store: Annotated[Path, typer.Option("--store", help="The folder in which this client keeps its state.")] = Path(
        "client-store"
    ),
    key: Annotated[
        Path | None, typer.Option("--key", help="This node's private key (default: node-N.key in the authority).")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", help="The data of this node (task at_home): a folder or file, or package.module:Name."),
    ] = None,
    tell_classes: Annotated[
        bool, typer.Option("--tell-classes", help="Tell the server how many examples of each class there are here.")
    ] = False,
    port: Annotated[int, typer.Option("--port", help="For the client app, on loopback.")] = 9094,
    resident: Resident = True,
    _allow: Allow = None,
    insecure: Insecure = 0,
    as_json: AsJson = False,
) -> None:
    """Start Flower's SuperNode for one client, offline, with the node's own key, which says whom it plays.

    With --json one object says what it was told; what Flower logs afterwards goes to standard error.
    """
    _need_flower()
    from fedreuse.deploy.flower import commands
    from fedreuse.deploy.flower.authority import Authority
    from fedreuse.deploy.flower.identity import check_secret

    if authority is None:
        commands.check_insecure(superlink.rpartition(":")[0], insecure)
        root = None
    else:
        root, key = Authority(authority).root, key or Authority(authority).own_key(client)
    if key is not None:
        check_secret(key)
    told: dict[str, str | int | bool] = {"store": str(store.absolute())}
    told |= {} if client is None else {"partition-id": client}
    told |= {} if key is None else {"key-path": str(key.absolute())}
    told |= {} if data is None else {"data-path": data if ":" in data else str(Path(data).absolute())}
    told |= {"tell-classes": True} if tell_classes else {}
    folder = commands.resident_folder(store) if resident else None
    command = commands.supernode_command(superlink, port, told, (root, key), folder)
    if as_json:
        show_json({"superlink": superlink, "is_encrypted": authority is not None, "node": told})
    _become(command)


def _become(command: list[str]) -> None:
    """Flower's program takes the place of this one."""
    from fedreuse.deploy.flower.commands import environment

    home = Path(os.environ.get("FLWR_HOME", str(Path.home() / ".flwr")))
    given = environment(home)
    os.environ["PATH"] = given["PATH"]
    os.execvpe(command[0], command, given)


def _read(config: Path, overrides: list[str]) -> tuple[RunConfig, Deployment]:
    from fedreuse.config.run_config import load, read_yaml, with_overrides
    from fedreuse.core.registry import parse
    from fedreuse.deploy.flower.options import Deployment

    plain = with_overrides(read_yaml(config), overrides)
    options: Deployment = parse(Deployment, plain.pop("deploy", {}), "deploy")
    return load(plain), options


def _tell_costs(config: Path, overrides: list[str], bandwidth: str | None, as_json: bool) -> None:
    from fedreuse.studies.study import load_study

    if _is_study(config):
        planned = of_study(load_study(config, [given for given in overrides if not given.startswith(_OPTIONS)]))
    else:
        one, _ = _read(config, overrides)
        planned = [Planned(one.label, one)]
    tell_costs(planned, bandwidth, as_json)


def _is_study(config: Path) -> bool:
    from fedreuse.config.run_config import read_yaml

    return "axes" in read_yaml(config)


def _metering(kind: str | None, line: tuple[str | None, str | None, str | None], both_ways: bool) -> Metering | None:
    from fedreuse.deploy.meter.conditions import FREE, Conditions
    from fedreuse.deploy.meter.metered import Metering

    up = Conditions.parse(*line)
    if kind is None:
        if up != FREE:
            raise ConfigError("--bandwidth, --delay and --loss need a line to act on; add --meter namespace")
        return None
    if kind not in ("relay", "namespace"):
        raise ConfigError(f"--meter must be relay or namespace, got {kind!r}")
    return Metering("relay" if kind == "relay" else "namespace", up, up if both_ways else FREE)


def _run_study(
    config: Path, overrides: list[str], out: Path | None, how: tuple[int | None, bool, Form], as_json: bool
) -> None:
    """Every run of a study on one federation, one after the other."""
    from fedreuse.cli.compare import finish, run_all
    from fedreuse.config.run_config import with_overrides
    from fedreuse.core.registry import parse
    from fedreuse.deploy.flower.options import Deployment
    from fedreuse.deploy.local.run import check_nodes, local_federation, run_on
    from fedreuse.studies.running import require_own
    from fedreuse.studies.study import load_study

    num_nodes, tls, form = how
    if num_nodes is None:
        raise ConfigError(f"{config} is a study (it has axes): --local N runs it here; an app folder holds one run")
    study = load_study(config, [given for given in overrides if not given.startswith(_OPTIONS)])
    plain = with_overrides({}, [given for given in overrides if given.startswith(_OPTIONS)])
    options: Deployment = parse(Deployment, plain.get("deploy", {}), "deploy")
    for planned in study.runs:
        check_nodes(planned.config, num_nodes)
    place = out or Path("runs") / study.name
    require_own(study, place)
    form = _secured(form, place, num_nodes) if tls else form
    with local_federation(place / "federation", num_nodes, form) as federation:
        _tell_notes(federation, as_json)

        def on_nodes(one: RunConfig, directory: Path, listener: Listener | None) -> RunDirectory:
            return run_on(federation, one, replace(options, out=str(directory), resume=True), listener)

        failed = run_all(study, place, as_json, runner=on_nodes)
    finish(study, place, failed, as_json)


def _tell_notes(federation: LocalFederation, as_json: bool) -> None:
    for note in getattr(federation.line, "notes", ()):
        say(f"note: {note}", err=as_json)


def _secured(form: Form, place: Path, num_nodes: int) -> Form:
    """With test certificates; a metered node finds the SuperLink under another address."""
    from fedreuse.deploy.flower.authority import Authority, make_authority
    from fedreuse.deploy.meter.packet_line import DOOR_ADDRESS

    folder = place / "federation" / "authority"
    hosts = ["127.0.0.1", "localhost", *([] if form.metering is None else [DOOR_ADDRESS])]
    made = Authority(folder) if (folder / "ca.pem").exists() else make_authority(folder, num_nodes, hosts)
    return replace(form, authority=made)


def _write(planned: RunConfig, options: Deployment, out: Path | None) -> None:
    from fedreuse.deploy.flower.app_folder import write_app

    if out is None:
        raise ConfigError("say where: --out FOLDER writes a Flower app there, --local N runs it here")
    folder = write_app(planned, options, out)
    show_lines(
        f"Flower app for {planned.task.clients} clients in {folder}",
        "next, where the SuperLink runs (docs/how-to/deploy.md):",
        f"  flwr run {folder} <superlink> --stream",
    )


def _run(planned: RunConfig, options: Deployment, how: tuple[int, bool, Form], as_json: bool) -> None:
    from fedreuse.deploy.local.run import check_nodes, run_local
    from fedreuse.report.results import plain, read_run
    from fedreuse.runs.claim import check_ours
    from fedreuse.runs.listeners.progress import Watcher

    num_nodes, tls, form = how
    check_nodes(planned, num_nodes)
    check_ours(Path(options.out))
    form = _secured(form, Path(options.out), num_nodes) if tls else form
    if not as_json:
        how_long = f"{counted(planned.rounds.count, 'round')} on {counted(num_nodes, 'node')}"
        show_lines(f"{planned.label}: {how_long} into {options.out}")
    with Watcher(stderr=as_json, echo=say) as watcher:
        directory = run_local(planned, options, watcher, form)
    result = read_run(directory)
    if as_json:
        show_json(plain(result))
    else:
        tell_result(result)


def _own_folders(data: Path | None, num_nodes: int) -> dict[int, Path]:
    """The folder of each client, as `data split` writes them."""
    from fedreuse.learning.files.layout import CLIENTS

    if data is None:
        return {}
    found = {int(path.name): path for path in (data / CLIENTS).glob("*") if path.name.isdecimal()}
    if sorted(found) != list(range(num_nodes)):
        raise ConfigError(
            f"--data {data}: there must be folders {CLIENTS}/0 to {CLIENTS}/{num_nodes - 1}, one per node, as "
            f"`fedreuse data split` writes them; found {sorted(found)[:10]}"
        )
    return found


def _make_authority(folder: Path, num_nodes: int, hosts: list[str] | None) -> None:
    from fedreuse.deploy.flower.authority import make_authority

    make_authority(folder, num_nodes, hosts or ["127.0.0.1", "localhost"])
    show_lines(
        f"test authority with {counted(num_nodes, 'node key')} in {folder}",
        "next:",
        f"  {command_line('superlink', '--authority', folder)}",
        f"  flwr supernode register {quote(f'{folder}/node-0.pub')} <superlink>   (each node, once)",
        f"  {command_line('supernode', 'HOST:8000', '--authority', folder)}   (each node: ca.pem, its own key)",
        f"deploy.roster={quote(f'{folder}/roster.txt')} says which key plays which client",
    )


def _need_flower() -> None:
    from importlib.util import find_spec

    if find_spec("flwr") is None:
        raise UserError("deployment needs Flower; install it with: pip install 'fedreuse[deploy]'")
