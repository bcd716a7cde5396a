"""Events of a run, one frozen dataclass each, and the request to stop that a listener may return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.local_trainer import Work
    from fedreuse.store.directory import RunDirectory

__all__ = ["Evaluated", "Failed", "Finished", "RoundDone", "RunEvent", "Started", "Stop", "Stopped", "Warned"]


@dataclass(frozen=True, eq=False)
class Started:
    """The run starts, or resumes, with `first_round`; earlier rounds can be read from the directory."""

    config: RunConfig
    directory: RunDirectory
    first_round: int


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A round was evaluated on validation examples; `scores` are keyed by the columns of the metrics table."""

    round_number: int
    scores: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class RoundDone:
    """A round is complete.

    Attributes:
        row: The round's row of `RunDirectory.metrics()`: `round`, scores (None if the round was not evaluated),
            numbers of clients by outcome, `seconds`, bytes under every boundary.
        events: Numbers of clients by outcome, and by outcome and reason.
        work: Computation of the clients in this round, summed over its replies.

    The round is stored with the next checkpoint: immediately, unless `checkpoint_every` is above 1.
    """

    row: Mapping[str, Any]
    events: Mapping[str, int]
    work: Work

    @property
    def round_number(self) -> int:
        """The number of the round, from 1."""
        return int(self.row["round"])


@dataclass(frozen=True, eq=False)
class Warned:
    """A round looks like an attack or a failure: one client dominates the step, or the validation score collapsed."""

    round_number: int
    reason: str


@dataclass(frozen=True, eq=False)
class Finished:
    """The run is complete; `summary` is the content of `summary.json`."""

    summary: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Stopped:
    """The run stopped at a listener's request; its rounds so far are stored, and it can be resumed."""

    round_number: int
    reason: str


@dataclass(frozen=True, eq=False)
class Failed:
    """The run ended with an error or was interrupted; the rounds up to the last checkpoint are stored."""

    error: BaseException


RunEvent = Started | Evaluated | Warned | RoundDone | Finished | Stopped | Failed


@dataclass(frozen=True)
class Stop:
    """A listener's request to stop the run after the current round.

    Args:
        reason: A short explanation, which is stored in the run directory.

    Example:
        >>> from fedreuse import Stop
        >>> Stop("no better than the median").reason
        'no better than the median'
    """

    reason: str
