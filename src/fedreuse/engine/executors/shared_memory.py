"""Arrays that several processes of one machine see without copying: anonymous memory, gone when the last one ends."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.wire.block import MODES, Block
from fedreuse.wire.parcel import Parcel

if TYPE_CHECKING:
    from fedreuse.wire.envelope import Envelope

__all__ = ["Area", "ArrayPlace", "EnvelopePlace", "attach", "open_arrays", "place_arrays", "place_envelopes"]

_ALIGNMENT = 64


@dataclass(frozen=True)
class Area:
    """A piece of anonymous memory that another process can map while its owner holds it."""

    owner: int
    descriptor: int
    size: int


@dataclass(frozen=True)
class ArrayPlace:
    """Where an array lies in an area."""

    offset: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class _ParcelPlace:
    blocks: tuple[tuple[int, int, tuple[ArrayPlace, ...]], ...]
    notes: Mapping[str, Any]
    second: _ParcelPlace | None


@dataclass(frozen=True)
class EnvelopePlace:
    """An envelope whose arrays lie in an area: light enough to be sent to every client's worker."""

    header: Mapping[str, Any]
    parcels: Mapping[str, _ParcelPlace | None]

    def open(self, view: mmap.mmap, envelope: type[Envelope]) -> Envelope:
        """The envelope, its arrays in place."""
        parcels = {group: _open_parcel(place, view) for group, place in self.parcels.items()}
        return envelope(**self.header, parcels=parcels)


@dataclass
class _Writer:
    """Collects arrays, each distinct one once, and their offsets."""

    arrays: list[np.ndarray] = field(default_factory=list)
    places: dict[int, ArrayPlace] = field(default_factory=dict)
    size: int = 0

    def put(self, array: np.ndarray) -> ArrayPlace:
        if id(array) not in self.places:
            self.places[id(array)] = ArrayPlace(self.size, array.dtype.str, array.shape)
            self.arrays.append(array)  # also keeps it alive, so that its id stays its own
            self.size += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        return self.places[id(array)]

    def close(self) -> Area:
        descriptor = os.memfd_create("fedreuse", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, max(1, self.size))
        with mmap.mmap(descriptor, max(1, self.size)) as view:
            for array in self.arrays:
                _array(view, self.places[id(array)])[...] = array
        return Area(os.getpid(), descriptor, max(1, self.size))


def place_arrays(arrays: Mapping[str, np.ndarray]) -> tuple[Area, dict[str, ArrayPlace]]:
    """Copy arrays into a new area, which lives until its descriptor is closed."""
    writer = _Writer()
    places = {name: writer.put(array) for name, array in arrays.items()}
    return writer.close(), places


def place_envelopes(envelopes: Sequence[Envelope]) -> tuple[Area, list[EnvelopePlace]]:
    """Copy the arrays of envelopes into a new area; what several share is there once."""
    writer = _Writer()
    parcels: dict[int, _ParcelPlace] = {}

    def put(parcel: Parcel | None) -> _ParcelPlace | None:
        if parcel is None:
            return None
        if id(parcel) not in parcels:
            blocks = tuple(
                (b.mode.code, b.count, tuple(writer.put(array) for array in b.fields)) for b in parcel.blocks
            )
            parcels[id(parcel)] = _ParcelPlace(blocks, parcel.notes, put(parcel.second))
        return parcels[id(parcel)]

    names = ("kind", "round_number", "exchange", "ack", "durable", "keep", "values")
    places = [
        EnvelopePlace(
            {name: getattr(envelope, name) for name in names} | {"values": dict(envelope.values)},
            {group: put(parcel) for group, parcel in envelope.parcels.items()},
        )
        for envelope in envelopes
    ]
    return writer.close(), places


def attach(area: Area) -> mmap.mmap:
    """Map an area of another process (or of this one)."""
    descriptor = os.open(f"/proc/{area.owner}/fd/{area.descriptor}", os.O_RDWR)
    try:
        return mmap.mmap(descriptor, area.size)
    finally:
        os.close(descriptor)


def open_arrays(view: mmap.mmap, places: Mapping[str, ArrayPlace]) -> dict[str, np.ndarray]:
    """The arrays of an area, without copying."""
    return {name: _array(view, place) for name, place in places.items()}


def _open_parcel(place: _ParcelPlace | None, view: mmap.mmap) -> Parcel | None:
    if place is None:
        return None
    blocks = tuple(
        Block(MODES[code], count, tuple(_array(view, at) for at in fields)) for code, count, fields in place.blocks
    )
    return Parcel(blocks, place.notes, _open_parcel(place.second, view))


def _array(view: mmap.mmap, place: ArrayPlace) -> np.ndarray:
    count = int(np.prod(place.shape, dtype=np.int64))
    if not count:
        return np.empty(place.shape, place.dtype)
    return np.frombuffer(view, np.dtype(place.dtype), count, place.offset).reshape(place.shape)
