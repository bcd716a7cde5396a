"""Parcels: the encoded form of one group, with a block per tensor of the schema and small notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.compression.wire.block import ABSENT, DENSE, Block, Notes, absent_block, dense_block, to_little_endian
from fedreuse.compression.wire.modes.packed import PACKED, decode_packed
from fedreuse.compression.wire.modes.rows import rows_block
from fedreuse.core.mapped import buffer_of, is_large
from fedreuse.core.schema import Schema
from fedreuse.core.tensors import Tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from fedreuse.core.schema import TensorSpec

__all__ = ["Parcel", "held_of", "pack_tensors"]


@dataclass(frozen=True, eq=False)
class Parcel:
    """The encoded form of one group.

    Attributes:
        blocks: One per tensor in schema order, including absent ones.
        notes: Small values that modes and links need for decoding.
        more: Further parcels, for links that send several in one message.
    """

    blocks: tuple[Block, ...]
    notes: Notes = field(default_factory=dict)
    more: tuple[Parcel, ...] = ()
    _decoded: Tensors | None = field(default=None, init=False, repr=False)
    """The tensors, if every block is dense and the sender is in this process; a changed copy does not have them."""

    @property
    def whole(self) -> Schema | None:
        """The schema, if the parcel has a dense block for each of its tensors and was made in this process."""
        return None if self._decoded is None else self._decoded.schema

    @property
    def field_bytes(self) -> int:
        """Bytes of all numerical fields, before packing."""
        return sum(block.field_bytes for block in self.all_blocks())

    @property
    def body_bytes(self) -> int:
        """Bytes in the message after its header."""
        return sum(block.body_bytes for block in self.all_blocks())

    def all_blocks(self) -> tuple[Block, ...]:
        """Return the blocks of this parcel and of further ones."""
        return self.blocks + tuple(block for parcel in self.more for block in parcel.blocks)

    def decode(self, schema: Schema, reference: Tensors | None = None) -> Tensors:
        """Return the tensors, dense if every present block is dense, else sparse.

        Args:
            schema: The schema of the group.
            reference: The tensors that packed values may have been coded against.
        """
        if self._decoded is not None and self._decoded.schema is schema:
            return self._decoded
        present = [(spec, block) for spec, block in zip(schema, self.blocks, strict=True) if block.mode is not ABSENT]
        part = schema if len(present) == len(schema) else Schema(tuple(spec for spec, _ in present))
        pieces = [self._decode_block(block, spec, held_of(reference, schema, spec)) for spec, block in present]
        flat = _join([values for _, values in pieces], part)
        if all(positions is None for positions, _ in pieces):
            return Tensors(part, flat)
        index = []  # positions in the flat vector of all present tensors
        for (positions, _), spec, start in zip(pieces, part, part.offsets, strict=False):
            local = np.arange(spec.size, dtype=np.int32) if positions is None else positions
            index.append(local + np.int32(start))
        return Tensors(part, flat, np.concatenate(index))

    def _decode_block(
        self, block: Block, spec: TensorSpec, held: np.ndarray | None
    ) -> tuple[np.ndarray | None, np.ndarray]:
        if block.mode is PACKED:
            return decode_packed(block, spec, self.notes, held)
        return block.mode.decode(block, spec, self.notes)


class _Whole(Parcel):
    """The parcel of whole dense tensors; in the process of the sender its blocks are seldom needed."""

    @classmethod
    def of(cls, tensors: Tensors) -> _Whole:
        parcel = cls.__new__(cls)
        parcel.__dict__.update(notes={}, more=(), _decoded=tensors)
        return parcel

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        assert self._decoded is not None
        wire, ends = to_little_endian(self._decoded.values), pairwise(self._decoded.schema.offsets)
        return tuple(Block(DENSE, stop - start, (wire[start:stop],)) for start, stop in ends)


def held_of(reference: Tensors | None, schema: Schema, spec: TensorSpec) -> np.ndarray | None:
    """Return one tensor's values in a reference, or None unless the reference is dense and has this schema."""
    if reference is None or reference.is_sparse or reference.schema != schema:
        return None
    start = schema.offsets[schema.positions[spec.name]]
    return reference.values[start : start + spec.size]


def pack_tensors(
    tensors: Tensors,
    schema: Schema,
    pack: Callable[[np.ndarray], Block] = dense_block,
    notes: Notes | None = None,
) -> Parcel:
    """Encode each tensor with `pack`; tensors that are missing become absent blocks, missing rows are left out.

    Args:
        tensors: Dense tensors, which may be a part of the schema.
        schema: The schema of the group.
        pack: Encodes a flat array.
        notes: Notes of the parcel.
    """
    part, values = tensors.schema, tensors.values
    if pack is dense_block and part is schema and notes is None:
        return _Whole.of(tensors)
    packed = {}
    for spec, start in zip(part, part.offsets, strict=False):
        block = pack(values[start : start + spec.size])
        whole = schema.specs[schema.positions[spec.name]]
        packed[spec.name] = block if spec.rows is None else rows_block(block, spec.rows, whole.shape[0])
    blocks = (packed[spec.name] if spec.name in packed else absent_block() for spec in schema)
    return Parcel(tuple(blocks), notes or {})


def _join(values: list[np.ndarray], part: Schema) -> np.ndarray:
    if not values:
        return np.empty(0, part.dtype)
    joined = values[0] if len(values) == 1 else _adjoining(values) if is_large(part.dense_bytes) else None
    if joined is None:
        joined = np.concatenate(values)
    return joined.astype(part.dtype, copy=False)


def _adjoining(values: list[np.ndarray]) -> np.ndarray | None:
    """Return arrays that follow each other in one read-only buffer as one view of it; None if they do not."""
    first, buffer = values[0], buffer_of(values[0])
    at = start = _address(first)
    for array in values:
        is_next = buffer_of(array) is buffer and _address(array) == at
        if buffer is None or array.flags.writeable or array.dtype != first.dtype or not is_next:
            return None
        at += array.nbytes
    offset = start - _address(np.frombuffer(buffer, np.uint8))
    whole = np.frombuffer(buffer, first.dtype, sum(map(len, values)), offset)
    whole.flags.writeable = False
    return whole


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
