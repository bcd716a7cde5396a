"""Replay of an asynchronous run: the stored order of arrivals, with clients computed on this machine.

The replies of an asynchronous method on nodes arrive in an order that no configuration decides. The run's events store
it. Everything else follows from configuration and seed, so that a replay ends with the same model, bit by bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from fedreuse.config.run_config import load
from fedreuse.core.errors import ConfigError
from fedreuse.engine.executors.executor import ExecutorConfig
from fedreuse.engine.executors.serial import SerialExecutor
from fedreuse.engine.executors.stored_order import End, StoredOrder
from fedreuse.engine.ports import FORGOT, RESYNC
from fedreuse.learning.at_home import is_at_home
from fedreuse.runs.launch import run
from fedreuse.store.directory import RunDirectory

if TYPE_CHECKING:
    import numpy as np

    from fedreuse.engine.executors.executor import Site

__all__ = ["Replay", "ends_of", "replay_arrivals"]


@dataclass(frozen=True)
class Replay:
    """Result of a replay.

    Attributes:
        arrivals: Number of requests that ended, by a reply or a loss.
        lost: Number of them without a usable reply.
        digest: SHA-256 of the replayed model.
        original: SHA-256 of the model of the run.
        first_difference: First evaluated round whose validation score differs; None if there is none.
    """

    arrivals: int
    lost: int
    digest: str
    original: str
    first_difference: int | None

    @property
    def is_same(self) -> bool:
        """True if both models and all scores are equal, bit by bit."""
        return self.digest == self.original and self.first_difference is None


def replay_arrivals(path: str | Path, out: str | Path) -> Replay:
    """Run an asynchronous run again with the order of arrivals that it stored, and compare the models.

    Args:
        path: Directory of a complete run.
        out: Directory of the replayed run, which must not hold one.

    Raises:
        ConfigError: The method waits for its cohorts, or the data are at the nodes.
        RunError: The stored order does not fit the configuration.

    Example:
        >>> from fedreuse import load, run
        >>> from fedreuse.runs.arrivals import replay_arrivals
        >>> task = {"name": "digits", "clients": 6, "limit": 200, "partition": "iid"}
        >>> devices = {"name": "profile", "up": {"low": 1e5, "high": 1e6}, "down": 1e6}
        >>> small = {"task": task, "network": "mlp", "devices": devices, "method": {"name": "fedbuff", "buffer": 2}}
        >>> directory = run(load(small, ["rounds={count: 3, cohort: 4}", "local.epochs=1"]), "first")
        >>> replay_arrivals("first", "again").is_same
        True
    """
    original = RunDirectory.open(path)
    config = load(original.config)
    if not config.method.needs.asynchronous:
        raise ConfigError(
            f"{original.path}: the method waits for its cohorts, so no order of arrivals decides anything; "
            "`fedreuse run` with this configuration gives the same bits"
        )
    if is_at_home(config.task.dataset):
        raise ConfigError(f"{original.path}: the data are at the nodes (task at_home), so no replay is possible here")
    if not original.is_complete:
        raise ConfigError(f"{original.path}: the run is not complete; finish it with --resume, then replay it")
    ends = ends_of(original)
    # the test split of the run was evaluated there; the replay does not open it again
    again = run(replace(config, test="sealed", listeners=()), out, executor=_Replayed(tuple(ends)))
    scores = [{row["round"]: row["validation_score"] for row in directory.metrics()} for directory in (original, again)]
    differing = [number for number, score in scores[0].items() if scores[1].get(number) != score]
    num_lost = sum(end.kind != "reply" for end in ends)
    digest, wanted = _digest(again.model()), _digest(original.model())
    return Replay(len(ends), num_lost, digest, wanted, min(differing, default=None))


def ends_of(directory: RunDirectory) -> list[End]:
    """Return the ends of all requests of a run, in the order in which the server saw them."""
    empty = {
        (row.round_number, row.client): row.kind
        for row in directory.ledger()
        if row.direction == "up" and row.kind in (FORGOT, RESYNC)
    }
    return [
        End(event.client, empty.get((event.round_number, event.client), "lost") if event.outcome == "lost" else "reply")
        for event in directory.events()
    ]


@dataclass(frozen=True, eq=False)
class _Replayed(ExecutorConfig):
    """Executor configuration with the stored order of arrivals."""

    ends: Sequence[End]

    def start(self, site: Site) -> StoredOrder:
        """Return an executor of clients in this process."""
        return StoredOrder(SerialExecutor(site), self.ends)


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    content = sha256()
    for name in sorted(arrays):
        content.update(f"{name} {arrays[name].dtype} {arrays[name].shape} ".encode())
        content.update(arrays[name].tobytes())
    return content.hexdigest()
