"""One configuration on a federation of this machine, from the app folder to the run directory."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import ConfigError, RunError
from fedreuse.core.events import Started
from fedreuse.core.listener import Listeners
from fedreuse.deploy.flower.app_folder import write_app
from fedreuse.deploy.flower.server import STATE_FILE
from fedreuse.deploy.local.federation import LocalFederation
from fedreuse.deploy.meter.metered import Metering, metered
from fedreuse.deploy.meter.transport_meter import TransportMeter
from fedreuse.runs.claim import check_free, check_same
from fedreuse.runs.replay import replay
from fedreuse.store.directory import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.listener import Listener
    from fedreuse.deploy.flower.authority import Authority
    from fedreuse.deploy.flower.options import Deployment

__all__ = ["Form", "check_nodes", "follow", "local_federation", "run_local", "run_on"]

_POLL_SECONDS = 0.5
_WAIT_SECONDS = 30.0


@dataclass(frozen=True)
class Form:
    """How a local federation is built: certificates and keys, a meter in its lines, data at home, resident workers."""

    authority: Authority | None = None
    metering: Metering | None = None
    data: Mapping[int, Path] = field(default_factory=dict)
    is_resident: bool = True


def run_local(
    config: RunConfig, options: Deployment, listener: Listener | None = None, form: Form | None = None
) -> RunDirectory:
    """Start a federation with a node per client, run, stop; the run directory is the same kind as a simulation's."""
    directory = RunDirectory(Path(options.out).absolute())
    if options.resume and directory.is_complete:
        directory.verify()
        check_same(config, directory)
        return directory
    check_free(directory, config, options.resume)
    place = directory.path / "federation"
    with local_federation(place, config.task.clients, form or Form()) as federation:
        return run_on(federation, config, options, listener)


@contextmanager
def local_federation(folder: Path, num_nodes: int, form: Form) -> Iterator[LocalFederation]:
    """A federation that is up."""
    federation = LocalFederation(folder, num_nodes, form.authority)
    federation.data, federation.is_resident = form.data, form.is_resident
    with nullcontext() if form.metering is None else metered(federation, form.metering), federation:
        yield federation


def run_on(
    federation: LocalFederation, config: RunConfig, options: Deployment, listener: Listener | None = None
) -> RunDirectory:
    """One run on a federation that is up.

    `listener` hears rounds as they become safe. It cannot stop the run: one that shall is named in the configuration,
    and hears the run where it is, in the server app.
    """
    place = Path(options.out).absolute()
    meter = federation.line if isinstance(federation.line, TransportMeter) else None
    authority = federation.authority
    options = replace(
        options,
        out=str(place),
        meter="" if meter is None else str(meter.counters.path.absolute()),
        roster=options.roster if authority is None or options.roster else str(authority.roster),
    )
    app = write_app(config, options, place / "app")
    (place / STATE_FILE).unlink(missing_ok=True)
    federation.launch(app)
    directory = RunDirectory(place)
    heard = Listeners([] if listener is None else [listener])
    for row in follow(federation, directory, config, heard):
        for event in replay(directory, [row]) if listener is not None else ():
            heard.tell(event)
    if meter is not None:
        directory.write_json("meter.json", meter.told())
    return directory


def check_nodes(config: RunConfig, num_nodes: int) -> None:
    """One client per node is the true form: a node that played several would share what clients must not."""
    if config.task.clients != num_nodes:
        raise ConfigError(
            f"--local {num_nodes} starts {num_nodes} nodes with one client each, but task.clients is "
            f"{config.task.clients}; write task.clients={num_nodes} after the file's name, or --local "
            f"{config.task.clients}"
        )


def follow(
    federation: LocalFederation, directory: RunDirectory, config: RunConfig, heard: Listeners
) -> Iterator[Mapping[str, Any]]:
    """The rows of the rounds as they become safe, until the server app ends; a failure is raised with its reason."""
    _await_start(federation, directory)
    seen = len(_rows(directory))
    heard.tell(Started(config, directory, seen + 1))
    while True:
        state = _state(directory.path)  # before the rows: once it says finished, they are all there
        rows = _rows(directory)
        yield from rows[seen:]
        seen = len(rows)
        if state["state"] == "finished":
            return
        _check(federation, directory, state)
        time.sleep(_POLL_SECONDS)


def _await_start(federation: LocalFederation, directory: RunDirectory) -> None:
    asked = time.monotonic()
    while not _state(directory.path):
        federation.check()
        if time.monotonic() - asked > _WAIT_SECONDS:
            if federation.has_ended() and not _state(directory.path):
                raise RunError(f"the server app ended before it began; see {federation.folder / 'superlink.log'}")
            asked = time.monotonic()
        time.sleep(_POLL_SECONDS)


def _rows(directory: RunDirectory) -> list[dict[str, Any]]:
    return directory.metrics() if (directory.path / "provenance.json").exists() else []


def _check(federation: LocalFederation, directory: RunDirectory, state: Mapping[str, Any]) -> None:
    federation.check()
    if state["state"] == "failed":
        raise RunError(str(state["error"]))
    log = federation.folder / "superlink.log"
    if not Path(f"/proc/{state['process']}").exists() and _state(directory.path) == state:
        raise RunError(f"the server app died; the rounds so far are safe, go on with resume=True. See {log}")


def _state(place: Path) -> dict[str, Any]:
    """What the server app says of itself; nothing before it starts."""
    try:
        told: dict[str, Any] = json.loads((place / STATE_FILE).read_text())
    except FileNotFoundError:
        return {}
    return told
