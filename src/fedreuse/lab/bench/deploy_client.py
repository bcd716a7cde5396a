"""Client app of `fedreuse lab bench deploy`: empty, one that loads everything anew, or that of the resident worker.

The message's group says which. It imports Flower alone, so that an empty app is one.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp

if TYPE_CHECKING:
    from flwr.app import Context

__all__ = ["ALONE", "EMPTY", "RECORD", "RESIDENT", "app", "play"]

EMPTY, ALONE, RESIDENT = "empty Flower app", "process per message", "resident worker"
RECORD = "bench"
app = ClientApp()


@app.train()
def play(message: Message, context: Context) -> Message:
    """One message, and beside its reply how long this process has lived and how much memory it took."""
    reply = _reply(message, context)
    lived = time.clock_gettime(time.CLOCK_BOOTTIME) - _born()
    reply.content[RECORD] = ConfigRecord({"process_seconds": lived, "peak_bytes": _peak()})
    return reply


app.query()(play)


def _reply(message: Message, context: Context) -> Message:
    way = message.metadata.group_id
    if way == EMPTY:
        return Message(RecordDict(), reply_to=message)
    from fedreuse.deploy.flower.client import answer, greet
    from fedreuse.deploy.resident.line import VARIABLE

    if way == ALONE:
        os.environ.pop(VARIABLE, None)
    return (greet if message.metadata.message_type == "query" else answer)(message, context)


def _born() -> float:
    """When this process was started, in seconds since the machine was."""
    words = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return int(words[19]) / os.sysconf("SC_CLK_TCK")


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
