"""Frames inside Flower messages: one record with one field of bytes, which keeps Flower's requests few."""

from __future__ import annotations

from flwr.app import ConfigRecord, Message, RecordDict

from fedreuse.core.errors import WireError
from fedreuse.deploy.flower.frame import Frame

__all__ = ["content_of", "frame_of", "has_frame", "open_reply", "others_of"]

_RECORD, _FIELD = "fedreuse", "frame"


def content_of(frame: Frame) -> RecordDict:
    """Return the content of a message that carries a frame."""
    return RecordDict({_RECORD: ConfigRecord({_FIELD: frame.to_bytes()})})


def frame_of(message: Message) -> Frame:
    """Return the frame of a message."""
    record = message.content.get(_RECORD)
    if not isinstance(record, ConfigRecord):
        raise WireError("a message without a fedreuse record")
    return Frame.from_bytes(record.get(_FIELD))


def open_reply(message: Message, node: int) -> Frame:
    """Return the frame of a reply; raise WireError for an error, or for a reply of another node."""
    if message.has_error():
        raise WireError(f"error {message.error.code}: {message.error.reason}")
    if message.metadata.src_node_id != node:
        raise WireError(f"it came from node {message.metadata.src_node_id} instead of node {node}")
    return frame_of(message)


def has_frame(message: Message) -> bool:
    """Return whether a message carries a frame."""
    return message.has_content() and _RECORD in message.content


def others_of(message: Message) -> RecordDict:
    """Return the other records of a message: those of an existing app."""
    return RecordDict({name: record for name, record in message.content.items() if name != _RECORD})
