"""What a deployment may be told beside the run's configuration; none of it changes the result of a healthy run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fedreuse.core.errors import require

__all__ = ["Deployment"]


@dataclass(frozen=True)
class Deployment:
    """Where results go, how long to wait for whom, and what is too much.

    `out` is the run directory on the server's disk (empty: runs/ and the run's own name); `min_clients` must have said
    hello within `wait_seconds` before the first round; an exchange ends after `timeout_seconds`, and with fewer than
    `min_replies` its round is tried again, up to `retries` times. `meter` is the file of a transport meter's counters
    on the server's machine (empty: nobody measures). `roster` is a file that says which key plays which client (empty:
    nodes say themselves whom they play).
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
