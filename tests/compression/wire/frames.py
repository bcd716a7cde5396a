"""What tests of the wire share: frames with a right checksum around anything."""

from __future__ import annotations

import struct
from zlib import crc32

import msgpack

from fedreuse.compression.wire.envelope import VERSION

START, ADDRESS = struct.Struct("<2sBI"), struct.Struct("<5I")


def signed(body: bytes) -> bytes:
    """What follows the checksum, with a right one in front."""
    return START.pack(b"FR", VERSION, crc32(body)) + body


def framed(header: object, arrays: bytes = b"") -> bytes:
    """A frame with a right checksum around any header."""
    packed = header if isinstance(header, bytes) else msgpack.packb(header)
    return signed(ADDRESS.pack(len(packed), 1, 1, 0, 0) + packed + arrays)
