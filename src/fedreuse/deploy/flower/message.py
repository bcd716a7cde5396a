"""A frame inside Flower's message: one record, one field of bytes, so that requests stay few."""

from __future__ import annotations

from flwr.app import ConfigRecord, Message, RecordDict

from fedreuse.core.errors import WireError
from fedreuse.deploy.flower.frame import Frame

__all__ = ["content_of", "frame_of", "has_frame", "open_reply", "others_of"]

_RECORD, _FIELD = "fedreuse", "frame"


def content_of(frame: Frame) -> RecordDict:
    """A message's content."""
    return RecordDict({_RECORD: ConfigRecord({_FIELD: frame.to_bytes()})})


def frame_of(message: Message) -> Frame:
    """The frame a message carries."""
    record = message.content.get(_RECORD)
    if not isinstance(record, ConfigRecord):
        raise WireError("a message without a fedreuse record")
    return Frame.from_bytes(record.get(_FIELD))


def open_reply(message: Message, node: int) -> Frame:
    """The frame of a reply that came without error, from the node that was asked."""
    if message.has_error():
        raise WireError(f"error {message.error.code}: {message.error.reason}")
    if message.metadata.src_node_id != node:
        raise WireError(f"it came from node {message.metadata.src_node_id}, node {node} was asked")
    return frame_of(message)


def has_frame(message: Message) -> bool:
    """Whether a message is one of ours at all."""
    return message.has_content() and _RECORD in message.content


def others_of(message: Message) -> RecordDict:
    """The records that stand beside the frame: those of an app."""
    return RecordDict({name: record for name, record in message.content.items() if name != _RECORD})
