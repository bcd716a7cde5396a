"""What both ends of a link hold for the whole group, while a message may touch only a part of it, or nothing.

A part is some of the tensors, or some rows of a tensor.
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
    """The part of what is held; zeros before anything is."""
    if held is None:
        return zeros(part)
    if held.schema == part:
        return held
    arrays = to_arrays(held)
    return from_arrays(
        part, {spec.name: arrays[spec.name] if spec.rows is None else arrays[spec.name][[*spec.rows]] for spec in part}
    )


def with_part(held: Tensors | None, part: Tensors, whole: Schema) -> Tensors:
    """What is held, with the tensors of `part` in the place of the old ones; the others stay as they are."""
    if part.schema == whole:
        return to_dense(part)
    arrays = to_arrays(part_of(held, whole))
    for spec, array in zip(part.schema, to_arrays(part).values(), strict=True):
        if spec.rows is None:
            arrays[spec.name] = array
        else:
            arrays[spec.name] = arrays[spec.name].copy()
            arrays[spec.name][[*spec.rows]] = array
    return from_arrays(whole, arrays)


def follow(parcel: Parcel | None, held: Tensors | None, whole: Schema) -> tuple[Tensors, Tensors]:
    """Add what a parcel carries to the estimate; silence leaves it. What arrives, and what is held from now on."""
    if parcel is None:
        if held is None:
            raise WireError("silence before anything was sent")
        return held, held
    return moved(parcel.decode(whole), held, whole)


def moved(change: Tensors, held: Tensors | None, whole: Schema) -> tuple[Tensors, Tensors]:
    """The part of the estimate that a change concerns, after it; and the whole estimate."""
    after = add(part_of(held, change.schema), change)
    return after, with_part(held, after, whole)


def followed(parcel: Parcel | None, held: Tensors, whole: Schema) -> Tensors:
    """What arrives at the receiver, told from the estimate after it followed: the tensors that were spoken of."""
    return held if parcel is None else part_of(held, present(parcel, whole))


def present(parcel: Parcel, whole: Schema) -> Schema:
    """The tensors that a parcel carries."""
    return Schema(tuple(spec for spec, block in zip(whole, parcel.blocks, strict=True) if block.mode is not ABSENT))
