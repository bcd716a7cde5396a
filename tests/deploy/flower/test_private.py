"""What this package uses of Flower's undocumented parts; a failure here names what a new version of Flower changed."""

from __future__ import annotations

from importlib.metadata import version

from flwr.app import ConfigRecord, Error, Message, RecordDict
from packaging.version import Version

from fedreuse.deploy.flower.private import remade, speaks_http


def test_a_reply_is_remade_with_other_content_and_another_id() -> None:
    request = Message(RecordDict(), 7, "train")
    reply = Message(RecordDict({"old": ConfigRecord({"a": 1})}), reply_to=request)
    made = remade(reply, RecordDict({"new": ConfigRecord({"b": 2})}), "first")
    assert list(made.content) == ["new"]
    assert (made.metadata.src_node_id, made.metadata.reply_to_message_id) == (7, "first")
    assert remade(reply, Error(2, "why"), "first").error.reason == "why"


def test_the_transport_of_the_installed_version() -> None:
    assert speaks_http() == (Version(version("flwr")) >= Version("1.41"))
