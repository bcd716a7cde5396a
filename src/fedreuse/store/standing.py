"""Progress of a run at one moment: read from its directory with few reads and without a lock."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.core.bounded import MAX_LIST_BYTES, read_json
from fedreuse.core.errors import FedreuseError

if TYPE_CHECKING:
    from fedreuse.store.directory import RunDirectory

__all__ = ["BOUNDARY", "Standing", "standing_of"]

BOUNDARY = "messages"
_REFUSED = re.compile(r"^round \d+: reply of client \d+ refused", re.MULTILINE)


@dataclass(frozen=True)
class Standing:
    """Progress of one run.

    Attributes:
        state: `complete`, `stopped`, `running`, or `interrupted` if the writing process has ended.
        metric: Name of the score.
        rounds: Number of committed rounds.
        planned_rounds: Number of rounds in the configuration.
        scores: Validation scores so far.
        used_bytes: Bytes so far under the boundary `messages`, both directions.
        dense_bytes: Bytes of dense FedAvg with the same cohorts and replies.
        num_lost: Number of selected clients whose reply was lost, including refused ones.
        num_refused: Number of refused replies.
        seconds: Duration of the committed rounds.
        now: Clients of the current round; empty if the run is not running.
    """

    state: str
    metric: str
    rounds: int
    planned_rounds: int
    scores: Sequence[float] = ()
    used_bytes: int = 0
    dense_bytes: int = 0
    num_lost: int = 0
    num_refused: int = 0
    seconds: float = 0.0
    now: tuple[int, ...] = ()

    @property
    def seconds_left(self) -> float | None:
        """Remaining seconds by the mean of the rounds so far; None before the first, 0 at the end."""
        if self.state == "complete":
            return 0.0
        return self.seconds / self.rounds * (self.planned_rounds - self.rounds) if self.rounds else None

    @property
    def saving(self) -> float | None:
        """1 - bytes / dense bytes, so far."""
        return 1 - self.used_bytes / self.dense_bytes if self.dense_bytes else None


def standing_of(directory: RunDirectory) -> Standing:
    """Read the progress of a run; what is not stored yet is empty.

    Raises:
        RunDirectoryError: The directory is damaged.

    """
    config = directory.config
    try:
        metrics = directory.metrics()
    except FedreuseError:
        if not directory.is_complete:  # otherwise the run ended between two reads
            raise
        metrics = directory.metrics()
    state = directory.state if directory.state != "unfinished" else _process_state(directory)
    return Standing(
        state,
        config["task"]["metric"]["name"],
        len(metrics),
        config["rounds"]["count"],
        [row["validation_score"] for row in metrics if row["validation_score"] is not None],
        sum(row.get(f"{way}_bytes ({BOUNDARY})", 0) for row in metrics for way in ("up", "down")),
        sum(row.get(f"dense_bytes ({BOUNDARY})", 0) for row in metrics),
        sum(row.get("lost", 0) for row in metrics),
        _num_refused(directory),
        sum(row["seconds"] for row in metrics),
        _cohort(directory, len(metrics) + 1) if state == "running" else (),
    )


def _process_state(directory: RunDirectory) -> str:
    """Return `running` or `interrupted` by the id in the lock file; trying the lock could keep a writer out."""
    try:
        owner = int(directory.file("LOCK").read_text())
        os.kill(owner, 0)
    except PermissionError:
        return "running"  # a process of another user
    except (OSError, ValueError, OverflowError):
        return "interrupted"
    return "running"


def _num_refused(directory: RunDirectory) -> int:
    log = directory.file("log.txt")
    return len(_REFUSED.findall(log.read_text(errors="replace"))) if log.exists() else 0


def _cohort(directory: RunDirectory, number: int) -> tuple[int, ...]:
    """Return the clients selected for a round, from the schedule that is drawn before the first."""
    try:
        schedule: Mapping[str, Any] = read_json(directory.file("schedule.json"), MAX_LIST_BYTES)
        return tuple(schedule["cohorts"][number - 1])
    except (OSError, ValueError, LookupError, TypeError):
        return ()  # not drawn yet, or after the last round
