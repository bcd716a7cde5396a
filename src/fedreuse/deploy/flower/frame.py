"""The one field of bytes inside a Flower message: whose run, whose client, a few facts, and a body (an envelope).

Layout: magic `FD`, version (1 byte), header length (4, little-endian), header (msgpack: run, client, facts), body.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import msgpack

from fedreuse.core.errors import WireError
from fedreuse.core.formats import FRAME
from fedreuse.core.local_trainer import Work

__all__ = ["ANYBODY", "FRAME_VERSION", "Frame", "work_of"]

FRAME_VERSION = FRAME.version
ANYBODY = -1
"""The client of a request: whoever sits at the node. The same request to many clients is then the same bytes."""
_START = struct.Struct("<2sBI")
_LONGEST_HEADER = 1 << 16
_DEEPEST = 3
"""Levels of facts: the facts themselves, what a fact holds, and one to spare."""
_LIMITS = {"flops": 1 << 60, "seconds": 1e9}
_LIMIT = 1 << 40
"""More steps or examples than any one message can stand for; what the ledger stores has to fit 64 bits."""


@dataclass(frozen=True)
class Frame:
    """What the server app and a client app say to each other."""

    run: str
    client: int = ANYBODY
    facts: Mapping[str, Any] = field(default_factory=dict)
    body: bytes = b""

    def to_bytes(self) -> bytes:
        """As it is sent."""
        header = msgpack.packb([self.run, self.client, dict(self.facts)])
        return b"".join([_START.pack(b"FD", FRAME_VERSION, len(header)), header, self.body])

    @staticmethod
    def from_bytes(data: object) -> Frame:
        """The frame again; anything malformed ends in a WireError."""
        if not isinstance(data, bytes) or len(data) < _START.size:
            raise WireError("not a frame: too short, or no bytes at all")
        magic, version, header_bytes = _START.unpack_from(data)
        if magic != b"FD":
            raise WireError("not a frame: it does not start with FD")
        if version != FRAME.version:
            raise WireError(f"frame version {version}, this program speaks version {FRAME_VERSION}")
        if header_bytes > min(_LONGEST_HEADER, len(data) - _START.size):
            raise WireError(f"the frame's header claims {header_bytes} bytes")
        end = _START.size + header_bytes
        try:
            run, client, facts = msgpack.unpackb(data[_START.size : end], use_list=False)
        except (ValueError, TypeError, msgpack.UnpackException, RecursionError) as error:
            raise WireError(f"malformed frame: {error}") from None
        if not (isinstance(run, str) and type(client) is int and isinstance(facts, dict)):
            raise WireError("malformed frame: run, client or facts of a wrong type")
        if not _is_shallow(facts):
            raise WireError(f"malformed frame: facts nested more than {_DEEPEST} deep")
        return Frame(run, client, facts, data[end:])


def _is_shallow(value: object, depth: int = 0) -> bool:
    """Whether comparing and printing it is safe."""
    if not isinstance(value, dict | tuple):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth < _DEEPEST and all(_is_shallow(one, depth + 1) for one in inner)


def work_of(frame: Frame) -> Work:
    """What a client says that it computed; numbers, or it is refused."""
    told = frame.facts.get("work")
    kinds = {field.name: (int if field.type == "int" else float) for field in fields(Work)}
    if not isinstance(told, dict) or told.keys() != kinds.keys():
        raise WireError("it does not say what was computed")
    if not all(
        type(told[name]) is kind and 0 <= told[name] < _LIMITS.get(name, _LIMIT) for name, kind in kinds.items()
    ):
        raise WireError("it says that something impossible was computed")
    return Work(**told)
