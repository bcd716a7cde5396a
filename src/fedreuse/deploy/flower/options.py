"""Options of a deployment beside the run's configuration; none changes the result of a healthy run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fedreuse.core.errors import require

__all__ = ["Deployment"]


@dataclass(frozen=True)
class Deployment:
    """Options of a deployment (keys `deploy.KEY`).

    Args:
        out: Run directory on the server's disk; empty for runs/ and the run's label.
        resume: Continue the run in `out`.
        timeout_seconds: Longest wait for the replies of an exchange, above 0.
        min_replies: Replies below which a round starts over, at least 0.
        retries: Restarts of a round before the run ends, at least 0; the run can be resumed.
        min_clients: Clients that must have said hello before the first round, at least 1, or all.
        wait_seconds: Longest wait for them, above 0.
        max_reply_bytes: Larger replies are refused; auto is three dense models and 1 MiB.
        meter: File of a transport meter's counters on the server's machine; empty for no meter.
        roster: File that maps keys to clients; empty where nodes name their own client.

    Raises:
        ConfigError: A value out of range.
    """

    out: str = ""
    resume: bool = False
    timeout_seconds: float = 600.0
    min_replies: int = 1
    retries: int = 2
    min_clients: int | Literal["all"] = "all"
    wait_seconds: float = 300.0
    max_reply_bytes: int | Literal["auto"] = "auto"
    meter: str = ""
    roster: str = ""

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.timeout_seconds > 0, "deploy.timeout_seconds must be positive", self.timeout_seconds)
        require(self.min_replies >= 0, "deploy.min_replies must not be negative", self.min_replies)
        require(self.retries >= 0, "deploy.retries must not be negative", self.retries)
        require(
            self.min_clients == "all" or self.min_clients >= 1,
            "deploy.min_clients must be positive or all",
            self.min_clients,
        )
        require(self.wait_seconds > 0, "deploy.wait_seconds must be positive", self.wait_seconds)
        require(
            self.max_reply_bytes == "auto" or self.max_reply_bytes > 0,
            "deploy.max_reply_bytes must be positive or auto",
            self.max_reply_bytes,
        )
