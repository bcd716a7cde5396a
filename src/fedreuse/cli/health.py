"""`fedreuse health`: whether a node reaches its server and can store its state, for people, probes and Prometheus."""

from __future__ import annotations

import os
import shutil
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from fedreuse.cli.app import AsJson, app
from fedreuse.cli.output import say, show_json, show_pairs
from fedreuse.core.errors import RunError, UserError

__all__ = ["Health", "examine_node", "health_command"]

_LITTLE_DISK = 1 << 30


@dataclass(frozen=True)
class Health:
    """State of a node.

    Attributes:
        superlink: Empty if the server accepts a connection, else the reason why not.
        store: Empty if the folder of the state can be written, else the reason why not.
        free_bytes: Free space on its disk.
        num_runs: Runs with state of this node.
        seconds_since_answer: Time since the state last changed; None if the node never answered.
    """

    superlink: str
    store: str
    free_bytes: int
    num_runs: int
    seconds_since_answer: float | None

    @property
    def problem(self) -> str:
        """Reasons why the node cannot take part; empty if there are none."""
        little = f"only {self.free_bytes:,} bytes are free" if self.free_bytes < _LITTLE_DISK else ""
        return "; ".join(filter(None, (self.superlink, self.store, little)))


@app.command("health", epilog="Example: fedreuse health server.example:8000 --store /var/lib/fedreuse")
def health_command(
    superlink: Annotated[str, typer.Argument(help="HOST:PORT of the SuperLink.", show_default=False)],
    store: Annotated[Path, typer.Option("--store", help="The folder of this client's state.")] = Path("client-store"),
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Print the text format of Prometheus, for a textfile collector.")
    ] = False,
    serve: Annotated[
        int | None,
        typer.Option("--serve", help="Serve /metrics on this port of loopback until Ctrl-C.", min=0, max=65535),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a node: its connection, its state and its disk.

    It connects to the server, tries the folder of the state, and shows when the node answered last. Run it where
    `fedreuse supernode` runs, as the same user. The exit code is 1 if the node cannot take part.
    """
    if serve is not None:
        _serve(superlink, store, serve)
        return
    health = examine_node(superlink, store)
    if metrics:
        say(_text(health).rstrip())
    elif as_json:
        show_json({**asdict(health), "problem": health.problem})
    else:
        ago = health.seconds_since_answer
        pairs = {
            "superlink": health.superlink or f"{superlink} accepts connections",
            "store": health.store or f"{store} is writable, {health.free_bytes / 1e9:,.1f} GB free",
            "last answer": "none yet" if ago is None else f"{ago:,.0f} s ago, {health.num_runs} run(s)",
        }
        show_pairs("node", pairs.items())
    if health.problem:
        raise RunError(f"this node cannot take part: {health.problem}")


def _serve(superlink: str, store: Path, port: int) -> None:
    """Answer each request with the health at that time."""
    from fedreuse.store.metrics_page import metrics_page

    examine_node(superlink, store)  # a wrong address is an error now
    with metrics_page(port, lambda: _text(examine_node(superlink, store))) as page:
        say(f"metrics at http://127.0.0.1:{page.server_port}/metrics")
        page.serve_forever()


def examine_node(superlink: str, store: Path) -> Health:
    """Return the health of the node that stores its state in `store`.

    Raises:
        UserError: The address is not HOST:PORT.
    """
    host, _, port = superlink.rpartition(":")
    if not host or not port.isdecimal():
        raise UserError(f"HOST:PORT expected, such as server.example:8000, got {superlink!r}")
    place = store if store.exists() else store.absolute().parent
    states = list(store.glob("*/client-*.safetensors"))
    last = max((path.stat().st_mtime for path in states), default=None)
    return Health(
        _reach(host.strip("[]"), int(port)),
        "" if os.access(place, os.W_OK | os.X_OK) else f"{place} cannot be written by this user",
        shutil.disk_usage(place if place.exists() else Path("/")).free,
        len({path.parent for path in states}),
        None if last is None else max(0.0, time.time() - last),
    )


def _reach(host: str, port: int) -> str:
    try:
        with socket.create_connection((host, port), timeout=10):
            return ""
    except (OSError, OverflowError) as error:
        return f"{host}:{port} cannot be reached ({error})"


def _text(health: Health) -> str:
    from fedreuse.store.prometheus_text import samples

    parts = [
        samples(
            "node_superlink_reachable",
            "1 if the server accepts a connection.",
            {"": int(not health.superlink)},
            "gauge",
        ),
        samples("node_store_writable", "1 if the state can be stored.", {"": int(not health.store)}, "gauge"),
        samples("node_store_free_bytes", "Free space for the state.", {"": health.free_bytes}, "gauge"),
        samples("node_runs", "Runs with state of this node.", {"": health.num_runs}, "gauge"),
    ]
    if health.seconds_since_answer is not None:
        age = {"": round(health.seconds_since_answer, 3)}
        parts.append(samples("node_answer_age_seconds", "Time since the last answer.", age, "gauge"))
    return "".join(parts)
