"""Estimates that both ends of a link hold of a whole group, updated by messages that may contain only a part of it.

A part consists of some tensors, or of some rows of a tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedreuse.compression.wire.block import ABSENT
from fedreuse.core.errors import WireError
from fedreuse.core.schema import Schema
from fedreuse.core.tensors import Tensors, add, from_arrays, to_arrays, to_dense, zeros

if TYPE_CHECKING:
    from fedreuse.compression.wire.parcel import Parcel

__all__ = ["follow", "followed", "moved", "part_of", "present", "with_part"]


def part_of(held: Tensors | None, part: Schema) -> Tensors:
    """Return a part of the held tensors; zeros if none are held yet."""
    if held is None:
        return zeros(part)
    if held.schema == part:
        return held
    arrays = to_arrays(held)
    return from_arrays(
        part, {spec.name: arrays[spec.name] if spec.rows is None else arrays[spec.name][[*spec.rows]] for spec in part}
    )


def with_part(held: Tensors | None, part: Tensors, whole: Schema) -> Tensors:
    """Return the held tensors with those of `part` replaced."""
    if part.schema == whole:
        return to_dense(part)
    arrays = to_arrays(part_of(held, whole))
    for spec, array in zip(part.schema, to_arrays(part).values(), strict=True):
        if spec.rows is None:
            arrays[spec.name] = array
        else:
            arrays[spec.name] = arrays[spec.name].copy()  # a read-only view of the held tensors
            arrays[spec.name][[*spec.rows]] = array
    return from_arrays(whole, arrays)


def follow(parcel: Parcel | None, held: Tensors | None, whole: Schema) -> tuple[Tensors, Tensors]:
    """Add a parcel to the estimate (None: no change); return the delivered tensors and the new estimate."""
    if parcel is None:
        if held is None:
            raise WireError("no parcel arrived, but there is no estimate yet")
        return held, held
    return moved(parcel.decode(whole), held, whole)


def moved(change: Tensors, held: Tensors | None, whole: Schema) -> tuple[Tensors, Tensors]:
    """Add a change to the estimate; return the changed part and the whole estimate."""
    after = add(part_of(held, change.schema), change)
    return after, with_part(held, after, whole)


def followed(parcel: Parcel | None, held: Tensors, whole: Schema) -> Tensors:
    """Return the tensors that `follow` delivered, given the estimate after it."""
    return held if parcel is None else part_of(held, present(parcel, whole))


def present(parcel: Parcel, whole: Schema) -> Schema:
    """Return the schema of the tensors that a parcel contains."""
    return Schema(tuple(spec for spec, block in zip(whole, parcel.blocks, strict=True) if block.mode is not ABSENT))
