"""Our client app with a plan of misdeeds: copied into the app of a test federation in the place of the honest one.

`chaos.json` beside the node's store says what to do in which round: {"2": "garbage"}. The client does its honest work
first, then spoils the bytes of its reply; or it holds, waits, or loses its memory before.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fedreuse.deploy.flower import client as flower_client
from fedreuse.deploy.flower.frame import Frame
from fedreuse.deploy.flower.message import frame_of

app = ClientApp()


@app.query()
def hello(message: Message, context: Context) -> Message:
    """Honest."""
    return flower_client.greet(message, context)


@app.train()
def train(message: Message, context: Context) -> Message:
    """One request; the deed of this round, if there is one."""
    disk = Path(str(context.node_config["store"])).parent
    number = int(message.metadata.group_id)
    plan = json.loads((disk / "chaos.json").read_text()) if (disk / "chaos.json").exists() else {}
    deed, *seconds = plan.get(str(number), "honest").split()
    if deed == "hold" and not (disk / f"held-{number}").exists():  # work has begun, and goes on when the mark is gone
        holding = disk / f"holding-{number}"
        holding.touch()
        (disk / f"held-{number}").touch()
        while holding.exists():
            time.sleep(0.2)
    if deed == "wait":
        time.sleep(float(seconds[0]))
    if deed == "wipe":
        shutil.rmtree(disk / "store")
    if deed == "corrupt":
        for file in (disk / "store").rglob("*.safetensors"):
            file.write_bytes(b"\0" * 100)
    reply = flower_client.answer(message, context)
    honest = frame_of(reply)
    spoil = SPOILED.get(deed)
    spoiled = honest.to_bytes() if spoil is None else spoil(honest, lambda: _schema(message, context), disk)
    (disk / "last-reply").write_bytes(honest.to_bytes())
    return Message(RecordDict({"fedreuse": ConfigRecord({"frame": spoiled})}), reply_to=message)


def _schema(message: Message, context: Context) -> Any:
    """What models are made of; honest nodes know it in their resident worker alone."""
    from fedreuse.deploy.flower.at_node import client_of

    return client_of(frame_of(message), context).schema


def _not_finite(honest: Frame, of_model: Callable[[], Any], _disk: Path) -> bytes:
    """A well-formed reply whose update is not a number."""
    import numpy as np

    from fedreuse.compression.codecs.dense import Dense
    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.core.tensors import Tensors

    schema = of_model()
    envelope = Envelope.from_bytes(honest.body, schema)
    group = schema.of_group("update")
    nothing = Tensors(group, np.full(group.size, np.nan, group.dtype))
    parcels = {**envelope.parcels, "update": Dense().encode(nothing, group, np.random.default_rng(0))}
    return replace(honest, body=replace(envelope, parcels=parcels).to_bytes()).to_bytes()


def _changed(honest: Frame, of_model: Callable[[], Any], **changes: Any) -> bytes:
    """A well-formed reply that is not what was asked for."""
    from fedreuse.compression.wire.envelope import Envelope

    envelope = Envelope.from_bytes(honest.body, of_model())
    return replace(honest, body=replace(envelope, **changes).to_bytes()).to_bytes()


SPOILED: dict[str, Callable[[Frame, Callable[[], Any], Path], bytes]] = {
    "garbage": lambda _honest, _schema, _disk: b"\xde\xad" * 5000,
    "cut_short": lambda honest, _schema, _disk: honest.to_bytes()[:-7],
    "too_large": lambda honest, _schema, _disk: honest.to_bytes() + bytes(8 << 20),
    "not_finite": _not_finite,
    "wrong_kind": lambda honest, schema, _disk: _changed(honest, schema, kind="score"),
    "no_groups": lambda honest, schema, _disk: _changed(honest, schema, parcels={}),
    "wrong_run": lambda honest, _schema, _disk: replace(honest, run="0" * 16).to_bytes(),
    "wrong_client": lambda honest, _schema, _disk: replace(honest, client=honest.client + 1).to_bytes(),
    "duplicate": lambda _honest, _schema, disk: (disk / "last-reply").read_bytes(),
}
