"""Where a run stands at this moment, for those who watch it: read from its directory, in few bytes, without a lock."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedreuse.core.errors import FedreuseError

if TYPE_CHECKING:
    from fedreuse.store.directory import RunDirectory

__all__ = ["BOUNDARY", "Standing", "standing_of"]

BOUNDARY = "messages"
_REFUSED = re.compile(r"^round \d+: reply of client \d+ refused", re.MULTILINE)


@dataclass(frozen=True)
class Standing:
    """One run at one moment.

    Attributes:
        state: `complete`, `stopped`, `running`, or `interrupted` if the process that wrote here is gone.
        metric: The name of its score.
        rounds: Rounds that are safe.
        planned_rounds: Rounds in all.
        scores: Validation scores so far.
        used_bytes: What crossed so far under the boundary `messages`, both ways.
        dense_bytes: What dense FedAvg with the same cohorts and replies would have cost.
        num_lost: Selected clients whose reply was lost, refused ones among them.
        num_refused: Replies that were refused.
        seconds: Time of the safe rounds.
        now: The clients of the round that is being played; nobody if the run does not go on.
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
        """By the mean of the rounds so far; None before the first, and 0 at the end."""
        if self.state == "complete":
            return 0.0
        return self.seconds / self.rounds * (self.planned_rounds - self.rounds) if self.rounds else None

    @property
    def saving(self) -> float | None:
        """1 - bytes / dense bytes, so far."""
        return 1 - self.used_bytes / self.dense_bytes if self.dense_bytes else None


def standing_of(directory: RunDirectory) -> Standing:
    """Read where a run stands; what is not there yet is empty.

    Raises:
        RunDirectoryError: The directory is damaged.

    """
    config = directory.config
    try:
        metrics = directory.metrics()
    except FedreuseError:
        if not directory.is_complete:  # else it ended between two looks
            raise
        metrics = directory.metrics()
    state = directory.state if directory.state != "unfinished" else _going(directory)
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


def _going(directory: RunDirectory) -> str:
    """By the process that locked the directory; its lock is not touched, for that could keep a writer out."""
    try:
        owner = int(directory.file("LOCK").read_text())
        os.kill(owner, 0)
    except PermissionError:
        return "running"  # somebody else's process
    except (OSError, ValueError, OverflowError):
        return "interrupted"
    return "running"


def _num_refused(directory: RunDirectory) -> int:
    log = directory.file("log.txt")
    return len(_REFUSED.findall(log.read_text(errors="replace"))) if log.exists() else 0


def _cohort(directory: RunDirectory, number: int) -> tuple[int, ...]:
    """Who is selected for a round, by the schedule that was drawn before the first one."""
    try:
        schedule: Mapping[str, Any] = json.loads(directory.file("schedule.json").read_text())
        return tuple(schedule["cohorts"][number - 1])
    except (OSError, ValueError, LookupError, TypeError):
        return ()  # not drawn yet, or after the last round
