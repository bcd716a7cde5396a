"""Arrays shared by processes of one machine without copying, in anonymous memory that disappears with its users."""

from __future__ import annotations

import mmap
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.compression.wire.block import Block
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.modes import MODES
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.mapped import is_large, open_spool, write_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import BinaryIO

__all__ = ["Area", "ArrayPlace", "EnvelopePlace", "FilePlace", "Layout", "Outbox", "Pieces", "Place", "Sent", "View",
           "attach",
           "lay_out_arrays", "lay_out_envelopes", "open_arrays"]  # fmt: skip


class Pieces:
    """Pieces of an area that were sent apart, by the offset of their first byte; others are missing."""

    def __init__(self, pieces: Mapping[int, np.ndarray]) -> None:
        """Take the pieces."""
        self._pieces = pieces

    def at(self, offset: int) -> tuple[np.ndarray, int]:
        """Return the piece with an offset, and the offset in it."""
        first = max(start for start in self._pieces if start <= offset)
        return self._pieces[first], offset - first


View = mmap.mmap | np.ndarray | Pieces
"""Memory that contains arrays."""
_ALIGNMENT = 64  # bytes: a cache line, and enough for every vector instruction


@dataclass(frozen=True)
class Area:
    """Anonymous memory that another process can map while the owner's file descriptor is open."""

    owner: int
    descriptor: int
    size: int


@dataclass(frozen=True)
class ArrayPlace:
    """Position of an array in an area."""

    offset: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class FilePlace:
    """Position of an array in a file that every process of this machine can map."""

    path: str
    offset: int
    dtype: str
    shape: tuple[int, ...]


Place = ArrayPlace | FilePlace


@dataclass(frozen=True)
class _ParcelPlace:
    blocks: tuple[tuple[int, int, tuple[ArrayPlace, ...]], ...]
    notes: Mapping[str, Any]
    more: tuple[_ParcelPlace, ...]


@dataclass(frozen=True)
class EnvelopePlace:
    """An envelope whose arrays are in an area: small enough to be pickled to every worker."""

    header: Mapping[str, Any]
    parcels: Mapping[str, _ParcelPlace | None]
    own: tuple[int, int] = (0, 0)
    """Start and end of the arrays that no other envelope has."""

    def open(self, view: View) -> Envelope:
        """Return the envelope; its arrays are views of the area."""
        parcels = {group: None if place is None else _open_parcel(place, view) for group, place in self.parcels.items()}
        return Envelope(**self.header, parcels=parcels)


@dataclass
class Layout:
    """Distinct arrays and their future positions."""

    arrays: list[np.ndarray] = field(default_factory=list)
    places: dict[int, ArrayPlace] = field(default_factory=dict)
    size: int = 0
    shared: int = 0
    """Size of the arrays that several envelopes have; they come first."""

    def put(self, array: np.ndarray) -> ArrayPlace:
        """Add an array, if it is new, and return its position."""
        if id(array) not in self.places:
            self.places[id(array)] = ArrayPlace(self.size, array.dtype.str, array.shape)
            self.arrays.append(array)  # also keeps it alive, so that its id is not reused
            self.size += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        return self.places[id(array)]

    def to_area(self) -> Area:
        """Copy the arrays into a new area, which lives until its descriptor is closed and the last mapping ends."""
        # memfd rather than multiprocessing.shared_memory: there is no name to clean up after a killed run.
        if not is_large(self.size):
            descriptor = os.memfd_create("fedreuse", os.MFD_CLOEXEC)
        else:
            with open_spool() as file:
                descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, max(1, self.size))
        with mmap.mmap(descriptor, max(1, self.size)) as view:
            self._write(view)
        return Area(os.getpid(), descriptor, max(1, self.size))

    def to_array(self, start: int = 0, end: int | None = None) -> np.ndarray:
        """Copy the arrays of a range into one array of bytes, for transports that carry arrays themselves."""
        end = self.size if end is None else end
        part = np.empty(max(1, end - start), np.uint8)
        for array in self.arrays:
            place = self.places[id(array)]
            if start <= place.offset < end:
                _array(part, replace(place, offset=place.offset - start))[...] = array
        return part

    def _write(self, view: View) -> None:
        for array in self.arrays:
            _array(view, self.places[id(array)])[...] = array


def lay_out_arrays(arrays: Mapping[str, np.ndarray], may_map: bool = False) -> tuple[Layout, dict[str, Place]]:
    """Lay out arrays by name; with `may_map`, arrays mapped from a file stay there and may exceed the memory."""
    layout = Layout()
    return layout, {name: (_file_of(array) if may_map else None) or layout.put(array) for name, array in arrays.items()}


def lay_out_envelopes(envelopes: Sequence[Envelope]) -> tuple[Layout, list[EnvelopePlace]]:
    """Lay out the arrays of envelopes; a parcel or array that several envelopes share is stored once.

    Arrays that several envelopes have come first; those of one envelope alone lie together.
    """
    layout = Layout()
    parcels: dict[int, _ParcelPlace] = {}
    users = Counter(key for envelope in envelopes for key in {id(array) for array in _arrays(envelope)})
    for envelope in envelopes:
        for array in _arrays(envelope):
            if users[id(array)] > 1 or len(envelopes) == 1:
                layout.put(array)
    layout.shared = layout.size

    def put(parcel: Parcel) -> _ParcelPlace:
        if id(parcel) not in parcels:
            blocks = tuple(
                (b.mode.code, b.count, tuple(layout.put(array) for array in b.fields)) for b in parcel.blocks
            )
            parcels[id(parcel)] = _ParcelPlace(blocks, parcel.notes, tuple(map(put, parcel.more)))
        return parcels[id(parcel)]

    names = ("kind", "round_number", "exchange", "ack", "durable", "keep", "values")
    places: dict[int, EnvelopePlace] = {}
    for envelope in envelopes:
        if id(envelope) not in places:
            start = layout.size
            placed = {group: None if parcel is None else put(parcel) for group, parcel in envelope.parcels.items()}
            header = {name: getattr(envelope, name) for name in names} | {"values": dict(envelope.values)}
            places[id(envelope)] = EnvelopePlace(header, placed, (start, layout.size))
    return layout, [places[id(envelope)] for envelope in envelopes]


def _arrays(envelope: Envelope) -> Iterator[np.ndarray]:
    """Yield the arrays of an envelope."""
    parcels = [parcel for parcel in envelope.parcels.values() if parcel is not None]
    while parcels:
        parcel = parcels.pop()
        parcels.extend(parcel.more)
        for block in parcel.blocks:
            yield from block.fields


@dataclass(frozen=True)
class Sent:
    """Bytes for another process of this machine: themselves, or where an area holds them if they are many."""

    data: bytes | Area

    def open(self) -> bytes | memoryview:
        """Return the bytes; those of an area are mapped."""
        return self.data if isinstance(self.data, bytes) else memoryview(attach(self.data)).toreadonly()


class Outbox:
    """Files of bytes that other processes will map; they live until the next `clear`."""

    def __init__(self) -> None:
        """Start empty."""
        self._files: list[BinaryIO] = []

    def put(self, pieces: Sequence[bytes | memoryview], *, may_share: bool) -> Sent:
        """Return the bytes as one string, or in a file if they are large and the receiver is on this machine."""
        size = sum(memoryview(piece).nbytes for piece in pieces)
        if not may_share or not is_large(size):
            return Sent(b"".join(pieces))
        file = open_spool()
        self._files.append(file)
        write_pieces(file, pieces)
        return Sent(Area(os.getpid(), file.fileno(), size))

    def clear(self) -> None:
        """Close the files; mappings of them stay valid."""
        for file in self._files:
            file.close()
        self._files = []


def attach(area: Area) -> mmap.mmap:
    """Map an area of another process (or of this one)."""
    # Workers are fresh interpreters that inherit nothing: the owner's descriptor is reached through /proc.
    descriptor = os.open(f"/proc/{area.owner}/fd/{area.descriptor}", os.O_RDWR)
    try:
        return mmap.mmap(descriptor, area.size)  # the mapping stays valid after its descriptor is closed
    finally:
        os.close(descriptor)


def open_arrays(view: View, places: Mapping[str, Place]) -> dict[str, np.ndarray]:
    """Return the arrays of an area, or of files, without copying."""
    return {
        name: _mapped(place) if isinstance(place, FilePlace) else _array(view, place) for name, place in places.items()
    }


def _open_parcel(place: _ParcelPlace, view: View) -> Parcel:
    blocks = tuple(
        Block(MODES[code], count, tuple(_array(view, at) for at in fields)) for code, count, fields in place.blocks
    )
    return Parcel(blocks, place.notes, tuple(_open_parcel(inner, view) for inner in place.more))


def _file_of(array: np.ndarray) -> FilePlace | None:
    """Return the file of an array that is one whole mapping; a slice of a memmap does not know its own offset."""
    is_whole = isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap) and array.flags.c_contiguous
    if not is_whole or array.filename is None or not array.size:  # type: ignore[attr-defined]  # it is a memmap
        return None
    return FilePlace(str(array.filename), array.offset, array.dtype.str, array.shape)  # type: ignore[attr-defined]


def _mapped(place: FilePlace) -> np.ndarray:
    return np.memmap(place.path, place.dtype, "r", place.offset, place.shape)


def _array(view: View, place: ArrayPlace) -> np.ndarray:
    count = int(np.prod(place.shape, dtype=np.int64))
    if not count:
        return np.empty(place.shape, place.dtype)
    offset = place.offset
    if isinstance(view, Pieces):
        view, offset = view.at(offset)
    return np.frombuffer(view, np.dtype(place.dtype), count, offset).reshape(place.shape)
