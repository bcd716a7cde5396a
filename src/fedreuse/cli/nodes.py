"""`fedreuse authority`, `superlink` and `supernode`: certificates and Flower's processes on several machines."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from fedreuse.cli.app import Allow, AsJson, app
from fedreuse.cli.output import command_line, counted, show_json, show_lines
from fedreuse.core.errors import UserError

__all__ = ["Resident", "authority_command", "need_flower", "superlink_command", "supernode_command"]

Insecure = Annotated[
    int,
    typer.Option(
        "--insecure", count=True, help="No encryption; give it twice to allow that beyond loopback.", metavar=""
    ),
]
AuthorityFolder = Annotated[
    Path | None, typer.Option("--authority", help="Certificates and keys (see `fedreuse authority`).")
]
Resident = Annotated[
    bool, typer.Option(help="Keep torch and data in one worker per node, instead of loading them for every message.")
]


@app.command("authority", epilog="Example: fedreuse authority certificates --nodes 6 --host server.example")
def authority_command(
    folder: Annotated[
        Path, typer.Argument(help="The folder to write; it must not hold an authority.", show_default=False)
    ],
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="Number of node keys.")] = 10,
    host: Annotated[
        list[str] | None,
        typer.Option("--host", help="A name or address of the SuperLink; again for more (default: loopback)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make certificates and keys for a trial federation.

    Give each node ca.pem and its own node-K.key only. roster.txt stays at the server and maps keys to clients. Use your
    own authority for lasting deployments.
    """
    need_flower()
    from fedreuse.deploy.flower.authority import make_authority

    hosts = host or ["127.0.0.1", "localhost"]
    authority = make_authority(folder, nodes, hosts)
    if as_json:
        show_json({"folder": str(folder), "nodes": nodes, "hosts": hosts, "roster": str(authority.roster)})
        return
    show_lines(
        f"test authority with {counted(nodes, 'node key')} in {folder}",
        "next:",
        f"  {command_line('superlink', '--authority', folder)}",
        f"  flwr supernode register {quote(f'{folder}/node-0.pub')} <superlink>   (each node, once)",
        f"  {command_line('supernode', 'HOST:8000', '--authority', folder)}   (each node: ca.pem, its own key)",
        f"deploy.roster={quote(f'{folder}/roster.txt')} maps keys to clients",
    )


@app.command("superlink", epilog="Example: fedreuse superlink --authority certificates --host 0.0.0.0")
def superlink_command(
    authority: AuthorityFolder = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port to listen on.")] = 8000,
    _allow: Allow = None,
    insecure: Insecure = 0,
    as_json: AsJson = False,
) -> None:
    """Start Flower's SuperLink, the server process of a federation.

    It starts offline and admits registered nodes only. With --json one object names the address; Flower's log goes to
    standard error.
    """
    need_flower()
    from fedreuse.deploy.flower import commands
    from fedreuse.deploy.flower.authority import Authority

    if authority is None:
        commands.check_insecure(host, insecure)
    command = commands.superlink_command(host, port, None if authority is None else Authority(authority))
    if as_json:
        show_json({"address": f"{host}:{port}", "is_encrypted": authority is not None})
    _replace_process(command)


@app.command("supernode", epilog="Example: fedreuse supernode server.example:8000 --authority certificates")
def supernode_command(
    superlink: Annotated[str, typer.Argument(help="HOST:PORT of the SuperLink.", show_default=False)],
    client: Annotated[
        int | None,
        typer.Argument(
            help="The number of this node's client, from 0; needed without a roster at the server.",
            min=0,
            show_default=False,
        ),
    ] = None,
    authority: AuthorityFolder = None,
    store: Annotated[Path, typer.Option("--store", help="The folder of this client's state.")] = Path("client-store"),
    key: Annotated[
        Path | None, typer.Option("--key", help="This node's private key (default: node-N.key in the authority).")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", help="The data of this node (task at_home): a folder or file, or package.module:Name."),
    ] = None,
    tell_classes: Annotated[
        bool, typer.Option("--tell-classes", help="Report the number of examples of each class to the server.")
    ] = False,
    port: Annotated[int, typer.Option("--port", help="The port for the client app, on loopback.")] = 9094,
    resident: Resident = True,
    _allow: Allow = None,
    insecure: Insecure = 0,
    as_json: AsJson = False,
) -> None:
    """Start Flower's SuperNode, the process of one client.

    It starts offline; with a roster at the server the node's key decides which client it is. With --json one object
    holds the node's configuration; Flower's log goes to standard error.
    """
    need_flower()
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
    node_config: dict[str, str | int | bool] = {"store": str(store.absolute())}
    if client is not None:
        node_config["partition-id"] = client
    if key is not None:
        node_config["key-path"] = str(key.absolute())
    if data is not None:  # package.module:Name is no path
        node_config["data-path"] = data if ":" in data else str(Path(data).absolute())
    if tell_classes:
        node_config["tell-classes"] = True
    worker_folder = commands.resident_folder(store) if resident else None
    command = commands.supernode_command(superlink, port, node_config, (root, key), worker_folder)
    if as_json:
        show_json({"superlink": superlink, "is_encrypted": authority is not None, "node": node_config})
    _replace_process(command)


def need_flower() -> None:
    """Raise UserError with the install command where Flower is missing."""
    from importlib.util import find_spec

    if find_spec("flwr") is None:
        raise UserError("deployment needs Flower; install it with: pip install 'fedreuse[deploy]'")


def _replace_process(command: list[str]) -> None:
    """Replace this process by Flower's program, which then gets signals directly."""
    from fedreuse.deploy.flower.commands import environment

    home = Path(os.environ.get("FLWR_HOME", str(Path.home() / ".flwr")))
    variables = environment(home)
    os.environ["PATH"] = variables["PATH"]  # execvpe searches the program on our own PATH
    os.execvpe(command[0], command, variables)
