"""Long messages in parts, over requests and replies: each part is a message of its own, and both ends keep files.

    server                                              node
    {part: (checksum, start, size)}, bytes       ->     appends them to its file      -> {have: bytes}
    {go: (checksum, size)}                       ->     answers the whole request     -> {work, size}, or {work}, reply
    {wanted: (exchange, start, stop)}            ->     reads its reply's file        -> {from: start}, bytes

A part that gets no reply is sent or asked for again, from where the other end stands: nothing is computed twice.
Neither end holds more than one part in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from fedreuse.core.errors import WireError
from fedreuse.core.mapped import map_file, open_spool, write_pieces

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fedreuse.compression.wire.envelope import Envelope
    from fedreuse.deploy.flower.frame import Frame

__all__ = ["Interrupted", "NodeParts", "Outgoing", "fetch", "is_long", "push"]

_PART_BYTES = 16 << 20
"""Bytes of one part; Flower and gRPC accept messages below 2 GiB and hold several copies of each."""
_REPEATS = 3
"""Times that one part is sent or asked for again."""


def is_long(size: int) -> bool:
    """Return whether a message of this size travels in parts."""
    return size > _PART_BYTES


class Outgoing:
    """A long request in a file, and its checksum, which names the transfer."""

    def __init__(self, envelope: Envelope) -> None:
        """Write the request to a file."""
        self.data = envelope.spool()
        self.name = crc32(self.data), len(self.data)


def push(outgoing: Outgoing, ask: Callable[[dict[str, object], bytes], Frame | None]) -> int:
    """Bring all parts of a request to a node; return the bytes that were sent again.

    Raises:
        WireError: The node stopped answering, or claims to have more than was sent.
    """
    checksum, size = outgoing.name
    have = repeated = failures = 0
    while have < size:
        part = bytes(outgoing.data[have : have + _PART_BYTES])
        reply = ask({"part": (checksum, have, size)}, part)
        stated = None if reply is None else reply.facts.get("have")
        if stated is not None and (type(stated) is not int or not 0 <= stated <= have + len(part)):
            raise WireError(f"it claims to have {stated!r} bytes of a request of which {have + len(part)} were sent")
        if isinstance(stated, int) and stated > have:
            have, failures = stated, 0
            continue
        have = have if stated is None else stated  # it lost its file: go on from where it stands
        repeated, failures = repeated + len(part), failures + 1
        if failures > _REPEATS:
            raise Interrupted(f"its request stopped after {have:,} of {size:,} bytes", repeated + have)
    return repeated


def fetch(exchange: int, size: int, ask: Callable[[dict[str, object], bytes], Frame | None]) -> tuple[memoryview, int]:
    """Fetch a long reply part by part; return it, mapped from a file, and the bytes that were asked for again.

    Raises:
        WireError: The node stopped answering, or sent something else.
    """
    at = repeated = failures = 0
    with open_spool() as file:
        while at < size:
            stop = min(at + _PART_BYTES, size)
            reply = ask({"wanted": (exchange, at, stop)}, b"")
            if reply is not None and reply.facts.get("from") == at and len(reply.body) == stop - at:
                write_pieces(file, [reply.body])
                at, failures = stop, 0
                continue
            repeated, failures = repeated + stop - at, failures + 1
            if failures > _REPEATS:
                raise Interrupted(f"its reply stopped after {at:,} of {size:,} bytes", repeated + at)
        return map_file(file), repeated


class Interrupted(WireError):
    """A transfer that was given up; `num_bytes` crossed for nothing."""

    def __init__(self, message: str, num_bytes: int) -> None:
        """Create the error."""
        super().__init__(message)
        self.num_bytes = num_bytes


class NodeParts:
    """Files of a node for the request that arrives and the reply that leaves; they survive its process."""

    def __init__(self, folder: Path, client: int) -> None:
        """Use a run's folder."""
        self._folder, self._client = folder, client

    def add(self, frame: Frame) -> int:
        """Append a part and return the bytes of its request that are here."""
        checksum, start, size = _numbers(frame.facts["part"])
        path = self._request(checksum, size)
        self._clear("request", path)
        have = path.stat().st_size if path.exists() else 0
        if start == have and have + len(frame.body) <= size:
            with path.open("ab") as file:
                file.write(frame.body)
            return have + len(frame.body)
        return have  # a part that is here already, or one that needs an earlier one

    def take(self, frame: Frame) -> memoryview:
        """Return the whole request, mapped; raise WireError if it is not complete."""
        checksum, size = _numbers(frame.facts["go"], 2)
        path = self._request(checksum, size)
        if not path.exists() or path.stat().st_size != size:
            raise WireError("the request is not complete here")
        with path.open("rb") as file:
            data = map_file(file)
        path.unlink()  # the mapping stays
        if crc32(data) != checksum:
            raise WireError("checksum mismatch: the request was damaged in transit")
        return data

    def keep(self, envelope: Envelope) -> int:
        """Write a long reply to a file, in place of an earlier one, and return its bytes."""
        path = self._reply(envelope.exchange)
        self._clear("reply", path)
        with path.open("wb") as file:
            return write_pieces(file, envelope.pieces())

    def part(self, frame: Frame) -> bytes:
        """Return a part of the reply; raise WireError if it is not here."""
        exchange, start, stop = _numbers(frame.facts["wanted"])
        path = self._reply(exchange)
        if not path.exists() or not 0 <= start < stop <= min(path.stat().st_size, start + _PART_BYTES):
            raise WireError(f"there is no part from {start} to {stop} of a reply to exchange {exchange} here")
        with path.open("rb") as file:
            file.seek(start)
            return file.read(stop - start)

    def _request(self, checksum: int, size: int) -> Path:
        return self._folder / f"request-{self._client}-{checksum:08x}-{size}.part"

    def _reply(self, exchange: int) -> Path:
        return self._folder / f"reply-{self._client}-{exchange}.part"

    def _clear(self, kind: str, kept: Path) -> None:
        for path in self._folder.glob(f"{kind}-{self._client}-*.part"):
            if path != kept:
                path.unlink(missing_ok=True)


def _numbers(fact: object, count: int = 3) -> tuple[int, ...]:
    is_numbers = isinstance(fact, tuple) and all(type(number) is int and number >= 0 for number in fact)
    if not isinstance(fact, tuple) or not is_numbers or len(fact) != count:
        raise WireError(f"malformed frame: {count} numbers of a part expected, got {str(fact)[:80]}")
    return fact
