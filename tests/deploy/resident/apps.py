"""A client app for tests of the resident worker: it says in which process it is, remembers, and misbehaves once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fedreuse.core.errors import ConfigError

TARGET = "tests.deploy.resident.apps:app"
app = ClientApp()


@app.query()
def tell(message: Message, context: Context) -> Message:
    """The process, and the how manyeth message of this context it is."""
    kept = context.state.config_records.setdefault("kept", ConfigRecord({"times": 0}))
    kept["times"] = int(kept["times"]) + 1  # type: ignore[call-overload]
    misbehave(Path(str(context.node_config["store"])) / "deed")
    told = ConfigRecord({"process": os.getpid(), "times": kept["times"]})
    return Message(RecordDict({"told": told}), reply_to=message)


def misbehave(deed: Path) -> None:
    """What the file says, once."""
    if not deed.exists():
        return
    word = deed.read_text()
    deed.unlink()
    if word == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "hang":
        os.kill(os.getpid(), signal.SIGSTOP)
    if word == "no memory":
        bytearray(1 << 62)
    if word == "refuse":
        raise ConfigError("not like this")
