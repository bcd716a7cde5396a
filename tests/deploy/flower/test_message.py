"""A frame in a Flower message: one field, from the node that was asked."""

from __future__ import annotations

import pytest
from flwr.app import ConfigRecord, Error, Message, RecordDict

from fedreuse.core.errors import WireError
from fedreuse.deploy.flower.frame import Frame
from fedreuse.deploy.flower.message import content_of, frame_of, open_reply


def ask(content: RecordDict) -> Message:
    message = Message(content, dst_node_id=7, message_type="train")
    message.metadata.__dict__["_message_id"] = "1"
    return message


def test_one_record_with_one_field() -> None:
    content = content_of(Frame("run", 3, {}, b"body"))
    assert [list(record) for record in content.values()] == [["frame"]]
    assert frame_of(ask(content)) == Frame("run", 3, {}, b"body")


def test_a_reply_must_come_from_the_node_that_was_asked() -> None:
    reply = Message(content_of(Frame("run")), reply_to=ask(RecordDict()))
    assert open_reply(reply, 7) == Frame("run")
    with pytest.raises(WireError, match="instead of node 8"):
        open_reply(reply, 8)


@pytest.mark.parametrize("content", [RecordDict(), RecordDict({"fedreuse": ConfigRecord({"frame": "text"})})])
def test_content_of_another_kind_is_refused(content: RecordDict) -> None:
    with pytest.raises(WireError):
        frame_of(ask(content))


def test_an_error_is_told_as_it_came() -> None:
    reply = Message(Error(3, "node unavailable"), reply_to=ask(RecordDict()))
    with pytest.raises(WireError, match="error 3: node unavailable"):
        open_reply(reply, 7)
