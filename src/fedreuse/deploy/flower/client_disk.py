"""Where a client remembers between messages: its own disk, by run, one process at a time."""

from __future__ import annotations

import fcntl
import logging
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fedreuse.core.errors import RunDirectoryError, WireError
from fedreuse.engine.client_store import DiskStore
from fedreuse.engine.records import ClientRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flwr.app import Context

__all__ = ["alone", "load", "run_folder"]

_log = logging.getLogger("flwr")


def run_folder(context: Context, run: str) -> Path:
    """The folder of a run: below `store` of the node config, or FEDREUSE_HOME, or the user's home."""
    if not (run.isascii() and run.isalnum()) or len(run) > 64:  # it came from outside
        raise WireError(f"{run[:80]!r} is not the name of a run")
    home = os.environ.get("FEDREUSE_HOME", str(Path.home() / ".fedreuse"))
    folder = Path(str(context.node_config.get("store", "") or Path(home) / "clients")) / run
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def load(store: DiskStore, client: int) -> ClientRecord:
    """What the client remembers; a damaged memory is a lost one, and the server will be told."""
    try:
        return store.load(client)
    except RunDirectoryError as error:
        _log.warning("client %d lost its memory: %s", client, error)
        return ClientRecord()


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """One process at a time: a request that was given up may still be worked on when the next one comes."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
