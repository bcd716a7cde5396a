"""One group as it travels: a block per tensor of the schema, and small notes of the link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fedreuse.schema import Schema
from fedreuse.tensors import Tensors
from fedreuse.wire.block import ABSENT, DENSE, Block, absent_block, dense_block

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Parcel", "pack_tensors"]


@dataclass(frozen=True, eq=False)
class Parcel:
    """Blocks in schema order (absent ones included) and the link's notes."""

    blocks: tuple[Block, ...]
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def field_bytes(self) -> int:
        """Bytes of all numerical fields."""
        return sum(block.field_bytes for block in self.blocks)

    def decode(self, schema: Schema) -> Tensors:
        """The tensors again: dense if every present block is dense, sparse otherwise."""
        present = [(spec, block) for spec, block in zip(schema, self.blocks, strict=True) if block.mode is not ABSENT]
        part = schema if len(present) == len(schema) else Schema(tuple(spec for spec, _ in present))
        values = [block.mode.values(block) for _, block in present]
        flat = _join(values, part)
        if all(block.mode is DENSE for _, block in present):
            return Tensors(part, flat)
        index = []
        for (spec, block), start in zip(present, part.offsets, strict=False):
            positions = block.mode.positions(block, spec)
            local = np.arange(spec.size, dtype=np.int32) if positions is None else positions
            index.append(local + np.int32(start))
        return Tensors(part, flat, np.concatenate(index))


def pack_tensors(tensors: Tensors, schema: Schema, pack: Callable[[np.ndarray], Block] = dense_block) -> Parcel:
    """Each tensor through `pack`; tensors of the schema that are not there become absent blocks."""
    part, values = tensors.schema, tensors.values
    packed = {
        spec.name: pack(values[start : start + spec.size]) for spec, start in zip(part, part.offsets, strict=False)
    }
    if part is schema:
        return Parcel(tuple(packed.values()))
    return Parcel(tuple(packed[spec.name] if spec.name in packed else absent_block() for spec in schema))


def _join(values: list[np.ndarray], part: Schema) -> np.ndarray:
    if not values:
        return np.empty(0, part.dtype)
    joined = values[0] if len(values) == 1 else np.concatenate(values)
    return joined.astype(part.dtype, copy=False)
