"""Client state between messages: on the client's own disk, by run, used by one process at a time."""

from __future__ import annotations

import fcntl
import logging
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import ConfigError, RunDirectoryError, WireError
from fedreuse.core.files import write_whole
from fedreuse.deploy.flower.frame import ANY_CLIENT
from fedreuse.engine.state.client_store import DiskStore
from fedreuse.engine.state.records import ClientRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flwr.app import Context

    from fedreuse.deploy.flower.frame import Frame

__all__ = ["alone", "load", "number_of", "run_folder"]

_log = logging.getLogger("flwr")


def run_folder(context: Context, run: str) -> Path:
    """Return the folder of a run: below `store` of the node config, else FEDREUSE_HOME, else the user's home."""
    if not (run.isascii() and run.isalnum()) or len(run) > 64:  # the name comes from the network and becomes a path
        raise WireError(f"{run[:80]!r} is not the name of a run")
    home = os.environ.get("FEDREUSE_HOME", str(Path.home() / ".fedreuse"))
    folder = Path(str(context.node_config.get("store", "") or Path(home) / "clients")) / run
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)  # client state may reveal the client's data
    return folder


def number_of(context: Context, request: Frame) -> Any:
    """Return the number of this node's client: its own partition-id, or the number that the server assigned."""
    own = context.node_config.get("partition-id")
    if own is not None:
        if request.client not in (ANY_CLIENT, own):
            raise ConfigError(
                f"the server says client {request.client}, but this node was started as client {own!r}; start it "
                "without partition-id, so that the roster decides, or correct the roster"
            )
        return own
    if request.client == ANY_CLIENT and not request.body and not request.is_part:
        return None  # a hello before the server has assigned a number
    kept = run_folder(context, request.run) / "client"
    if request.client != ANY_CLIENT:
        write_whole(kept, str(request.client).encode(), is_private=True)
    return int(kept.read_text()) if kept.exists() else None


def load(store: DiskStore, client: int) -> ClientRecord:
    """Return the client's record; a damaged one counts as lost, and the reply reports that to the server."""
    try:
        return store.load(client)
    except RunDirectoryError as error:
        _log.warning("client %d lost its state: %s", client, error)
        return ClientRecord()


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a lock file: a process may still work on a request that timed out when the next request arrives."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
