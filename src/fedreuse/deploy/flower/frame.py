"""Frames, the one field of bytes in a Flower message: run, client, a few facts, and a body (an envelope).

Layout: magic `FD`, version (1 byte), header length (4, little-endian), header (msgpack: run, client, facts), body.
The version is 2 for frames of a message in parts (see `parts.py`), else 1.
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

__all__ = ["ANY_CLIENT", "FRAME_VERSION", "Frame", "work_of"]

FRAME_VERSION = FRAME.version
ANY_CLIENT = -1
"""Client number of a request to any client; equal requests to many clients are then equal bytes."""
_START = struct.Struct("<2sBI")
_LONGEST_HEADER = 1 << 16
_WHOLE_VERSION = 1
"""Version of frames that carry a whole message, which earlier programs read, too."""
_PART_FACTS = frozenset({"part", "have", "go", "size", "wanted", "from"})
_DEEPEST = 3
"""Allowed levels of nesting in facts: one more than any fact uses."""
_LIMITS = {"flops": 1 << 60, "seconds": 1e9}
_LIMIT = 1 << 40
"""Upper limit of steps and examples in one message; sums in the ledger must fit 64 bits."""


@dataclass(frozen=True)
class Frame:
    """Message between server app and client app.

    Args:
        run: Name of the run instance.
        client: Number of the client, or `ANY_CLIENT`.
        facts: Few scalars and short sequences, such as versions, a challenge or the computed work.
        body: Bytes of an envelope; empty in a hello.
    """

    run: str
    client: int = ANY_CLIENT
    facts: Mapping[str, Any] = field(default_factory=dict)
    body: bytes = b""

    @property
    def is_part(self) -> bool:
        """True if the frame belongs to a message in parts."""
        return not _PART_FACTS.isdisjoint(self.facts)

    def to_bytes(self) -> bytes:
        """Return the encoded frame."""
        header = msgpack.packb([self.run, self.client, dict(self.facts)])
        version = FRAME_VERSION if self.is_part else _WHOLE_VERSION
        return b"".join([_START.pack(b"FD", version, len(header)), header, self.body])

    @staticmethod
    def from_bytes(data: object) -> Frame:
        """Decode a frame; malformed bytes raise WireError."""
        if not isinstance(data, bytes) or len(data) < _START.size:
            raise WireError("not a frame: too short, or not bytes")
        magic, version, header_bytes = _START.unpack_from(data)
        if magic != b"FD":
            raise WireError("not a frame: it does not start with FD")
        if version not in (_WHOLE_VERSION, FRAME.version):
            raise WireError(f"frame version {version}, this program reads version {FRAME_VERSION} and below")
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
    """Return whether a value is nested so little that comparing and printing it cannot overflow the stack."""
    if not isinstance(value, dict | tuple):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth < _DEEPEST and all(_is_shallow(item, depth + 1) for item in inner)


def work_of(frame: Frame) -> Work:
    """Return the work that a client reports; raise WireError for anything but plausible numbers."""
    work = frame.facts.get("work")
    kinds = {field.name: (int if field.type == "int" else float) for field in fields(Work)}
    if not isinstance(work, dict) or work.keys() != kinds.keys():
        raise WireError("it does not report the computed work")
    if not all(
        type(work[name]) is kind and 0 <= work[name] < _LIMITS.get(name, _LIMIT) for name, kind in kinds.items()
    ):
        raise WireError("it reports an impossible amount of work")
    return Work(**work)
