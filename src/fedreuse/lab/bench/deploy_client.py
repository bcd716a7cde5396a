"""Client app of `fedreuse lab bench deploy`: empty, one process per message, or the resident worker.

The group of the message selects which. The module imports only Flower, so that the empty app is really empty.
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
    """Answer one message; the reply also has the lifetime and the peak memory of this process."""
    reply = _reply(message, context)
    lived = time.clock_gettime(time.CLOCK_BOOTTIME) - _start_time()
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


def _start_time() -> float:
    """Return the start time of this process in seconds since boot."""
    words = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return int(words[19]) / os.sysconf("SC_CLK_TCK")


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
