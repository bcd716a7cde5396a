"""The client app as Flower loads it: it hands messages on, and says in words why a node cannot take part."""

from __future__ import annotations

from pathlib import Path

import pytest
from flwr.app import Context, Message, RecordDict

from fedreuse.core.errors import ConfigError
from fedreuse.deploy.flower.client import answer, app, greet
from fedreuse.deploy.flower.frame import Frame
from fedreuse.deploy.flower.message import content_of, frame_of
from fedreuse.deploy.resident.line import VARIABLE


def message(kind: str) -> Message:
    made = Message(content_of(Frame("run", body=b"" if kind == "query" else b"x")), dst_node_id=1, message_type=kind)
    made.metadata.__dict__["_message_id"] = "1"
    return made


def test_hello_is_refused_in_words_and_other_messages_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    node: dict[str, str | int | bool | float] = {"store": str(tmp_path), "partition-id": 0}
    context = Context(1, 1, node, RecordDict(), {"task.name": "no such dataset"})
    for hello in (greet, app):
        told = frame_of(hello(message("query"), context))
        assert told.run == "run"
        assert "no such dataset" in told.facts["refused"]
    with pytest.raises(ConfigError, match="no such dataset"):
        answer(message("train"), context)
