"""The server app: the same run, with Flower's grid in the place of an executor."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flwr.serverapp import ServerApp

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
"""In the run directory: the process that serves, and how it ended."""
_log = logging.getLogger("flwr")
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Flower calls this."""
    serve(grid, context.run_config)


def serve(grid: Grid, flat: Mapping[str, Any]) -> RunDirectory:
    """One run to its end; however it ends, the state file tells."""
    config, options = from_flat(flat)
    place = Path(options.out or Path("runs") / config.label).absolute()
    place.mkdir(parents=True, exist_ok=True)
    _tell(place, "running")
    try:
        clients = GridClients(grid, options, config.run_id, place)
        directory = run(config, place, resume=options.resume, listeners=[_Log()], executor=clients)
    except BaseException as error:
        _tell(place, "failed", str(error))
        raise
    _tell(place, "finished")
    return directory


def _tell(place: Path, state: str, error: str = "") -> None:
    told = json.dumps({"state": state, "process": os.getpid(), "error": error}) + "\n"
    write_whole(place / STATE_FILE, told.encode())


class _Log(Listener):
    """Writes to Flower's log."""

    def started(self, event: Started) -> None:
        """The run begins, or goes on."""
        config, place = event.config, event.directory.path
        _log.info("%s: rounds %d to %d into %s", config.label, event.first_round, config.rounds.count, place)

    def round_done(self, event: RoundDone) -> None:
        """A round is over."""
        row = event.row
        _log.info("round %d: fresh %d, reused %d, lost %d", row["round"], row["fresh"], row["reused"], row["lost"])
