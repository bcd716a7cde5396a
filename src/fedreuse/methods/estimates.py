"""What the methods share whose links keep an estimate of every client's update: whose estimates the server averages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedreuse.methods.averaging import AveragingServer
from fedreuse.methods.mifa import Remembered
from fedreuse.methods.server_memory import MemoryServer
from fedreuse.server_steps import SgdStep

if TYPE_CHECKING:
    from typing import Literal

__all__ = ["estimates_server"]


def estimates_server(agg: Literal["participants", "all"], server_lr: float) -> AveragingServer | MemoryServer:
    """Those of the cohort, as FedAvg averages updates; or those of everybody, as MIFA does."""
    step = SgdStep(server_lr)
    return AveragingServer(step) if agg == "participants" else MemoryServer(Remembered(), step)
