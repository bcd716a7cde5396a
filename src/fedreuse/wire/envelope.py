"""One message on the wire: who it belongs to, its parcels and values, and exactly how many bytes that is.

Layout: magic `FR`, version (1 byte), CRC-32 of all that follows (4), header length (4), round, exchange, ack and
durable (4 each), header (msgpack), then the arrays of all blocks one after another, little-endian. Names, shapes and
dtypes never travel: both ends hold the schema. The addresses have a fixed width, so that a message is as long in the
last round as in the first, whatever the checkpoints.
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

from fedreuse.errors import WireError
from fedreuse.wire.block import MODES, Block
from fedreuse.wire.parcel import Parcel

if TYPE_CHECKING:
    from fedreuse.schema import ModelSchema, Schema

__all__ = ["VERSION", "Envelope"]

VERSION = 1
_START = struct.Struct("<2sBI")
_ADDRESS = struct.Struct("<5I")
_FRAME_BYTES = _START.size + _ADDRESS.size


@dataclass(frozen=True, eq=False)
class Envelope:
    """A packed message. `ack` names the exchange it builds on, `durable` the last one inside a server checkpoint."""

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
        """Everything but the arrays."""
        parcels = [[group, _describe(parcel)] for group, parcel in self.parcels.items()]
        packed: bytes = msgpack.packb([self.kind, self.keep, dict(self.values), parcels])
        return packed

    @property
    def field_bytes(self) -> int:
        """Bytes of all numerical fields."""
        return sum(parcel.field_bytes for parcel in self.parcels.values() if parcel is not None)

    def size(self) -> int:
        """Length of `to_bytes()`, without making it."""
        return _FRAME_BYTES + len(self.header) + self.field_bytes

    def to_bytes(self) -> bytes:
        """The message as it is sent."""
        addresses = (len(self.header), self.round_number, self.exchange, self.ack, self.durable)
        body: list[bytes | memoryview[int]] = [_ADDRESS.pack(*addresses), self.header]
        for parcel in self.parcels.values():
            if parcel is not None:
                body += [np.ascontiguousarray(array).data for block in parcel.all_blocks() for array in block.fields]
        checksum = 0
        for piece in body:
            checksum = crc32(piece, checksum)
        return b"".join([_START.pack(b"FR", VERSION, checksum), *body])

    @staticmethod
    def from_bytes(data: bytes, schema: ModelSchema) -> Envelope:
        """The message again; anything malformed ends in a WireError."""
        if len(data) < _FRAME_BYTES:
            raise WireError(f"a message has at least {_FRAME_BYTES} bytes, got {len(data)}")
        magic, version, checksum = _START.unpack_from(data)
        if magic != b"FR":
            raise WireError("not a fedreuse message: it does not start with FR")
        if version != VERSION:
            raise WireError(f"message version {version}, this program speaks version {VERSION}")
        if crc32(memoryview(data)[_START.size :]) != checksum:
            raise WireError("checksum mismatch: the message was damaged on its way")
        header_bytes, round_number, exchange, ack, durable = _ADDRESS.unpack_from(data, _START.size)
        view = memoryview(data)[_FRAME_BYTES:]
        if header_bytes > len(view):
            raise WireError(f"the header claims {header_bytes} bytes, {len(view)} are there")
        reader = _Reader(view[header_bytes:])
        try:
            kind, keep, values, groups = msgpack.unpackb(view[:header_bytes], use_list=False)
            parcels = {str(group): _read_parcel(entry, schema.of_group(group), reader) for group, entry in groups}
        except WireError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, msgpack.UnpackException, RecursionError) as error:
            raise WireError(f"malformed header: {error}") from None
        if not isinstance(kind, str) or not isinstance(values, dict) or not isinstance(keep, bool):
            raise WireError("malformed header: kind, values or keep of a wrong type")
        if len(parcels) != len(groups) or not all(isinstance(group, str) for group, _ in groups):
            raise WireError("malformed header: groups must have names, each its own")
        if not all(isinstance(name, str) and _is_value(value) for name, value in values.items()):
            raise WireError("malformed header: a value that is no number, flag, text or tuple of these")
        reader.close()
        return Envelope(kind, round_number, exchange, ack, durable, keep, parcels, values)


def _is_value(value: object) -> bool:
    """What `core.message.Value` allows."""
    if isinstance(value, tuple):
        return all(_is_value(inner) for inner in value)
    return isinstance(value, bool | int | float | str)


def _describe(parcel: Parcel | None) -> list[Any] | None:
    """Modes, counts, notes, second parcel; empty tails are left out, and silence is nothing at all."""
    if parcel is None:
        return None
    modes = bytes(block.mode.code for block in parcel.blocks)
    counts = [block.count for block in parcel.blocks if block.mode.has_count]
    described = [modes, counts, dict(parcel.notes), _describe(parcel.second)]
    while described and not described[-1]:
        described.pop()
    return described


def _read_parcel(entry: tuple[Any, ...] | None, schema: Schema, reader: _Reader) -> Parcel | None:
    if entry is None:
        return None
    empty_tail: tuple[Any, ...] = (b"", (), {}, None)
    modes, counts, notes, second = entry + empty_tail[len(entry) :]
    if not isinstance(modes, bytes) or len(modes) != len(schema):
        raise WireError(f"{len(schema)} tensors in the schema, {len(modes)} in the message")
    if not isinstance(notes, dict):
        raise WireError("malformed header: notes of a wrong type")
    left = iter(counts)
    blocks = []
    for spec, code in zip(schema, modes, strict=True):
        mode = MODES.get(code)
        if mode is None:
            raise WireError(f"{spec.name}: unknown mode {code}")
        count = next(left, None) if mode.has_count else spec.size
        if not isinstance(count, int) or not 0 <= count <= spec.size:
            raise WireError(f"{spec.name}: {count} kept coordinates of {spec.size}")
        blocks.append(Block(mode, count, mode.read(reader.take, spec, count, notes)))
    if next(left, None) is not None:
        raise WireError("more counts than sparse tensors")
    return Parcel(tuple(blocks), dict(notes), _read_parcel(second, schema, reader))


class _Reader:
    """Takes arrays off the front of a buffer, never beyond its end."""

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
