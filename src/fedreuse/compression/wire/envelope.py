"""Envelopes: serialized messages.

Layout: magic `FR`, version (1 byte), CRC-32 of all that follows (4), header length (4), round, exchange, ack and
durable (4 each), header (msgpack), then the arrays of all blocks one after another, little-endian. Names, shapes and
dtypes are not sent: both ends hold the schema. The numbers before the header have a fixed width, so that the length of
a message does not depend on the round.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from zlib import crc32

import msgpack
import numpy as np

from fedreuse.compression.wire.header import describe_parcel, is_values, named_groups, read_parcel, unpack_header
from fedreuse.compression.wire.limits import FRAME_BYTES, limits_of
from fedreuse.core.errors import WireError
from fedreuse.core.formats import WIRE
from fedreuse.core.mapped import map_file, open_spool, write_pieces

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel
    from fedreuse.core.schema import ModelSchema

__all__ = ["VERSION", "Envelope"]

VERSION = WIRE.version
_START = struct.Struct("<2sBI")
_ADDRESS = struct.Struct("<5I")


@dataclass(frozen=True, eq=False)
class Envelope:
    """A message with encoded groups.

    Attributes:
        kind: The message's kind.
        round_number: The round, from 1.
        exchange: Number of the exchange of requests and replies.
        ack: The exchange whose client state the message builds on.
        durable: The last exchange contained in a server checkpoint.
        keep: Asks the client to hold the groups until the round ends.
        parcels: Encoded groups; None for a group of which nothing is sent.
        values: Small values.
    """

    kind: str
    round_number: int
    exchange: int
    ack: int = 0
    durable: int = 0
    keep: bool = False
    parcels: Mapping[str, Parcel | None] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def header(self) -> bytes:
        """The serialized header: kind, keep, values, and descriptions of the parcels."""
        parcels = [[group, describe_parcel(parcel)] for group, parcel in self.parcels.items()]
        packed: bytes = msgpack.packb([self.kind, self.keep, dict(self.values), parcels])
        return packed

    @property
    def field_bytes(self) -> int:
        """Bytes of all numerical fields, before packing."""
        return sum(parcel.field_bytes for parcel in self.parcels.values() if parcel is not None)

    @property
    def body_bytes(self) -> int:
        """Bytes of all arrays in the message."""
        return sum(parcel.body_bytes for parcel in self.parcels.values() if parcel is not None)

    def size(self) -> int:
        """Return the length of `to_bytes()` without serializing."""
        return FRAME_BYTES + len(self.header) + self.body_bytes

    def to_bytes(self) -> bytes:
        """Serialize the message."""
        return b"".join(self.pieces())

    def pieces(self) -> list[bytes | memoryview[int]]:
        """Return the bytes of `to_bytes` as pieces, which are views of the arrays: nothing is copied."""
        addresses = (len(self.header), self.round_number, self.exchange, self.ack, self.durable)
        body: list[bytes | memoryview[int]] = [_ADDRESS.pack(*addresses), self.header]
        for parcel in self.parcels.values():
            if parcel is not None:
                body += [np.ascontiguousarray(array).data for block in parcel.all_blocks() for array in block.fields]
        checksum = 0
        for piece in body:
            checksum = crc32(piece, checksum)
        return [_START.pack(b"FR", VERSION, checksum), *body]

    def spool(self) -> memoryview:
        """Return the bytes of `to_bytes` in an unlinked file, mapped; they take no memory of this process."""
        with open_spool() as file:
            write_pieces(file, self.pieces())
            return map_file(file)

    @staticmethod
    def address_of(data: bytes | memoryview) -> tuple[int, int, int, int]:
        """Return round, exchange, ack and durable of a message, for a receiver that does not know the schema."""
        return _open_frame(data)[1]

    @staticmethod
    def from_bytes(data: bytes | memoryview, schema: ModelSchema) -> Envelope:
        """Parse a message; raise WireError if it is malformed or longer than the schema allows."""
        limits = limits_of(schema)
        if len(data) > limits.message_bytes:
            raise WireError(f"a message of {len(data)} bytes, but this model's have at most {limits.message_bytes}")
        header, addresses, arrays = _open_frame(data)
        kind, keep, values, groups = unpack_header(header, limits)
        if not isinstance(kind, str) or not isinstance(values, dict) or not isinstance(keep, bool):
            raise WireError("malformed header: kind, values or keep of a wrong type")
        if not is_values(values):
            raise WireError("malformed header: a value that is no number, bool, string, bytes or tuple")
        reader = _Reader(arrays)
        parcels = {
            group: read_parcel(entry, schema.of_group(group), reader.take) for group, entry in named_groups(groups)
        }
        reader.close()
        envelope = Envelope(kind, *addresses, keep, parcels, values)
        if envelope.header != header:  # the encoding must be unique, so that accounted and received bytes agree
            raise WireError("malformed header: not in canonical form (shortest encoding, unique keys)")
        return envelope


def _open_frame(data: bytes | memoryview) -> tuple[memoryview, tuple[int, int, int, int], memoryview]:
    """Return header, addresses and arrays of a message after checking its frame."""
    if len(data) < FRAME_BYTES:
        raise WireError(f"a message has at least {FRAME_BYTES} bytes, got {len(data)}")
    magic, version, checksum = _START.unpack_from(data)
    if magic != b"FR":
        raise WireError("not a fedreuse message: it does not start with FR")
    if version != WIRE.version:
        raise WireError(f"message version {version}, but this program reads version {VERSION}")
    if crc32(memoryview(data)[_START.size :]) != checksum:
        raise WireError("checksum mismatch: the message was damaged in transit")
    header_bytes, *addresses = _ADDRESS.unpack_from(data, _START.size)
    view = memoryview(data)[FRAME_BYTES:]
    if header_bytes > len(view):
        raise WireError(f"the header claims {header_bytes} bytes, but {len(view)} follow")
    round_number, exchange, ack, durable = addresses
    return view[:header_bytes], (round_number, exchange, ack, durable), view[header_bytes:]


class _Reader:
    """A reader of arrays from a buffer; raises WireError at its end."""

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._at = 0

    def take(self, dtype: np.dtype[np.generic], length: int) -> np.ndarray:
        end = self._at + dtype.itemsize * length
        if length < 0:
            raise WireError(f"an array of {length} numbers")
        if end > len(self._view):
            raise WireError(f"the message ends {end - len(self._view)} bytes early")
        array = np.frombuffer(self._view, dtype, length, self._at)
        self._at = end
        return array

    def close(self) -> None:
        if self._at != len(self._view):
            raise WireError(f"{len(self._view) - self._at} bytes left over")
