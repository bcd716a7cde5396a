"""Where a client remembers between messages: its own disk, by run, one process at a time."""

from __future__ import annotations

import fcntl
import logging
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import ConfigError, RunDirectoryError, WireError
from fedreuse.core.files import write_whole
from fedreuse.deploy.flower.frame import ANYBODY
from fedreuse.engine.state.client_store import DiskStore
from fedreuse.engine.state.records import ClientRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flwr.app import Context

    from fedreuse.deploy.flower.frame import Frame

__all__ = ["alone", "load", "number_of", "run_folder"]

_log = logging.getLogger("flwr")


def run_folder(context: Context, run: str) -> Path:
    """The folder of a run: below `store` of the node config, or FEDREUSE_HOME, or the user's home."""
    if not (run.isascii() and run.isalnum()) or len(run) > 64:  # it came from outside
        raise WireError(f"{run[:80]!r} is not the name of a run")
    home = os.environ.get("FEDREUSE_HOME", str(Path.home() / ".fedreuse"))
    folder = Path(str(context.node_config.get("store", "") or Path(home) / "clients")) / run
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)  # what a client remembers is nobody else's business
    return folder


def number_of(context: Context, request: Frame) -> Any:
    """The client that this node plays: as it was started, or as the server says in this request or said before."""
    own = context.node_config.get("partition-id")
    if own is not None:
        if request.client not in (ANYBODY, own):
            raise ConfigError(
                f"the server says client {request.client}, but this node was started as client {own!r}; start it "
                "without partition-id, then the roster decides, or mend the roster"
            )
        return own
    if request.client == ANYBODY and not request.body:
        return None  # hello: nobody has said so far
    kept = run_folder(context, request.run) / "client"
    if request.client != ANYBODY:
        write_whole(kept, str(request.client).encode(), is_private=True)
    return int(kept.read_text()) if kept.exists() else None


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
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
