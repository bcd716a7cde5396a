"""What a run tells while it goes on: one frozen dataclass per event, and what a listener may answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedreuse.config.run_config import RunConfig
    from fedreuse.core.local_trainer import Work
    from fedreuse.store.directory import RunDirectory

__all__ = ["Evaluated", "Failed", "Finished", "RoundDone", "RunEvent", "Started", "Stop", "Stopped"]


@dataclass(frozen=True, eq=False)
class Started:
    """The run begins, or goes on, with `first_round`; earlier rounds can be read from the directory."""

    config: RunConfig
    directory: RunDirectory
    first_round: int


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A round was evaluated on validation examples; scores by the names of their columns in the metrics."""

    round_number: int
    scores: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class RoundDone:
    """A round is over.

    Attributes:
        row: The round's metrics, as `RunDirectory.metrics()` will give them: `round`, scores (None where the round was
            not evaluated), numbers of clients by outcome, `seconds`, bytes under every boundary.
        events: Numbers of clients by outcome, and by outcome and reason.
        work: What the clients did in this round, summed over its replies.

    The round is stored once it is checkpointed: at once, unless `checkpoint_every` is above 1.
    """

    row: Mapping[str, Any]
    events: Mapping[str, int]
    work: Work

    @property
    def round_number(self) -> int:
        """The number of the round, from 1."""
        return int(self.row["round"])


@dataclass(frozen=True, eq=False)
class Finished:
    """The run is complete; `summary` is what `summary.json` holds."""

    summary: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Stopped:
    """A listener asked the run to stop; its rounds so far are stored, and it can be resumed."""

    round_number: int
    reason: str


@dataclass(frozen=True, eq=False)
class Failed:
    """The run ends with an error, or was interrupted; the rounds up to the last checkpoint are stored."""

    error: BaseException


RunEvent = Started | Evaluated | RoundDone | Finished | Stopped | Failed


@dataclass(frozen=True)
class Stop:
    """What a listener returns to stop the run after the round at hand.

    Args:
        reason: A few words for people; they stand in the run directory.

    Example:
        >>> from fedreuse import Stop
        >>> Stop("no better than the median").reason
        'no better than the median'
    """

    reason: str
