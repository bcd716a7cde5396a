"""Run of a configuration on a federation of this machine, from the app folder to the run directory."""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.core.bounded import read_json
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
    """Options of a local federation.

    Args:
        authority: Certificates and keys; None for plain text on loopback.
        metering: Meter of its lines; None for none.
        data: Data folder of each node (task at_home).
        is_resident: Keep one worker per node instead of a process per message.
    """

    authority: Authority | None = None
    metering: Metering | None = None
    data: Mapping[int, Path] = field(default_factory=dict)
    is_resident: bool = True


def run_local(
    config: RunConfig, options: Deployment, listener: Listener | None = None, form: Form | None = None
) -> RunDirectory:
    """Start a federation with one node per client, run a configuration, and stop the federation.

    Args:
        config: The run.
        options: Options of the deployment; `out` is the run directory.
        listener: Is notified of finished rounds.
        form: Options of the federation.

    Returns:
        The run directory, of the same form as a simulation's.

    Raises:
        RunDirectoryError: The directory holds another run, or one that is not resumed.
        RunError: The run failed.
    """
    directory = RunDirectory(Path(options.out).absolute())
    if options.resume and directory.is_complete:
        directory.verify()
        check_same(config, directory)
        return directory
    check_free(directory, config, options.resume)
    folder = directory.path / "federation"
    with local_federation(folder, config.task.clients, form or Form()) as federation:
        return run_on(federation, config, options, listener)


@contextmanager
def local_federation(folder: Path, num_nodes: int, form: Form) -> Iterator[LocalFederation]:
    """Start a federation, and stop it at the end of the block; keys that were made below its folder are removed."""
    federation = LocalFederation(folder, num_nodes, form.authority)
    federation.data, federation.is_resident = form.data, form.is_resident
    try:
        with nullcontext() if form.metering is None else metered(federation, form.metering), federation:
            yield federation
    finally:
        if form.authority is not None and form.authority.folder.absolute().is_relative_to(folder.absolute()):
            shutil.rmtree(form.authority.folder)


def run_on(
    federation: LocalFederation, config: RunConfig, options: Deployment, listener: Listener | None = None
) -> RunDirectory:
    """Run a configuration on a running federation.

    `listener` is notified of rounds once they are stored. It cannot stop the run; listeners of the configuration can,
    since they run in the server app.
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
    listeners = Listeners([] if listener is None else [listener])
    for row in follow(federation, directory, config, listeners):
        for event in replay(directory, [row]) if listener is not None else ():
            listeners.tell(event)
    if meter is not None:
        directory.write_json("meter.json", meter.to_plain())
    return directory


def check_nodes(config: RunConfig, num_nodes: int) -> None:
    """Raise ConfigError unless there is one node per client: clients at one node would share memory and disk."""
    if config.task.clients != num_nodes:
        raise ConfigError(
            f"--local {num_nodes} starts {num_nodes} nodes with one client each, but task.clients is "
            f"{config.task.clients}; write task.clients={num_nodes} after the file's name, or --local "
            f"{config.task.clients}"
        )


def follow(
    federation: LocalFederation, directory: RunDirectory, config: RunConfig, listeners: Listeners
) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of stored rounds until the server app ends; raise RunError with its reason if it fails."""
    _await_start(federation, directory)
    seen = len(_rows(directory))
    listeners.tell(Started(config, directory, seen + 1))
    while True:
        state = _state(directory.path)  # read before the rows: once it is finished, all rows are there
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
                raise RunError(
                    f"the server app ended before it started the run; see {federation.folder / 'superlink.log'}"
                )
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
        raise RunError(f"the server app died; the rounds so far are safe, continue with resume=True. See {log}")


def _state(place: Path) -> dict[str, Any]:
    """Return the state that the server app wrote; empty before it starts."""
    try:
        state: dict[str, Any] = read_json(place / STATE_FILE)
    except FileNotFoundError:
        return {}
    return state
