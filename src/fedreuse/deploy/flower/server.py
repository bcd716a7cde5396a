"""Server app of a deployment: a run with Flower's grid as executor."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flwr.serverapp import ServerApp

from fedreuse.core.errors import UserError
from fedreuse.core.files import write_whole
from fedreuse.core.listener import Listener
from fedreuse.deploy.flower.flat_config import from_flat
from fedreuse.deploy.flower.grid_executor import GridClients
from fedreuse.runs.launch import run

if TYPE_CHECKING:
    from flwr.app import Context
    from flwr.serverapp import Grid

    from fedreuse.core.events import RoundDone, Started
    from fedreuse.store.directory import RunDirectory

__all__ = ["STATE_FILE", "app", "serve"]

STATE_FILE = "server-app.json"
"""File in the run directory with the process of the server app and its state."""
_log = logging.getLogger("flwr")
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Serve one run; Flower calls this."""
    serve(grid, context.run_config)


def serve(grid: Grid, flat: Mapping[str, Any]) -> RunDirectory:
    """Run a flat configuration to its end, and keep the state file up to date."""
    config, options = from_flat(flat)
    place = Path(options.out or Path("runs") / config.label).absolute()
    place.mkdir(parents=True, exist_ok=True)
    _write_state(place, "running")
    try:
        clients = GridClients(grid, options, config.run_id, place)
        directory = run(config, place, resume=options.resume, listeners=[_Log()], executor=clients)
    except BaseException as error:
        _write_state(place, "failed", _cause(error))
        raise
    _write_state(place, "finished")
    return directory


def _cause(error: BaseException) -> str:
    """Return the cause of a failure; `str()` of an exit is its code, and of some errors it is empty."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, SystemExit):
        return (
            f"the server app was stopped (exit code {error.code}); the rounds so far are safe: continue with --resume"
        )
    return f"{type(error).__name__}: {error}"


def _write_state(place: Path, state: str, error: str = "") -> None:
    content = json.dumps({"state": state, "process": os.getpid(), "error": error}) + "\n"
    write_whole(place / STATE_FILE, content.encode())


class _Log(Listener):
    """Listener that writes to Flower's log."""

    def started(self, event: Started) -> None:
        """Log the rounds to run."""
        config, place = event.config, event.directory.path
        _log.info("%s: rounds %d to %d into %s", config.label, event.first_round, config.rounds.count, place)

    def round_done(self, event: RoundDone) -> None:
        """Log the counts of a round."""
        row = event.row
        _log.info("round %d: fresh %d, reused %d, lost %d", row["round"], row["fresh"], row["reused"], row["lost"])
