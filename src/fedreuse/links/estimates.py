"""What both ends of a link hold for the whole group, while a message may touch only some of its tensors, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedreuse.errors import WireError
from fedreuse.schema import Schema
from fedreuse.tensors import Tensors, add, from_arrays, pick, to_arrays, to_dense, zeros
from fedreuse.wire.block import ABSENT

if TYPE_CHECKING:
    from fedreuse.wire.parcel import Parcel

__all__ = ["follow", "followed", "part_of", "with_part"]


def part_of(held: Tensors | None, part: Schema) -> Tensors:
    """The tensors of `part` out of what is held; zeros before anything is."""
    if held is None:
        return zeros(part)
    return held if held.schema == part else pick(held, [spec.name for spec in part])


def with_part(held: Tensors | None, part: Tensors, whole: Schema) -> Tensors:
    """What is held, with the tensors of `part` in place of its own; the others wait as they are."""
    if part.schema == whole:
        return to_dense(part)
    return from_arrays(whole, to_arrays(part_of(held, whole)) | to_arrays(part))


def follow(parcel: Parcel | None, held: Tensors | None, whole: Schema) -> tuple[Tensors, Tensors]:
    """Add what a parcel carries to the estimate; silence leaves it. What arrives, and what is held from now on."""
    if parcel is None:
        if held is None:
            raise WireError("silence before anything was sent")
        return held, held
    change = parcel.decode(whole)
    after = add(part_of(held, change.schema), change)
    return after, with_part(held, after, whole)


def followed(parcel: Parcel | None, held: Tensors, whole: Schema) -> Tensors:
    """What arrives at the receiver, told from the estimate after it followed: the tensors that were spoken of."""
    if parcel is None:
        return held
    blocks = zip(whole, parcel.blocks, strict=True)
    return part_of(held, Schema(tuple(spec for spec, block in blocks if block.mode is not ABSENT)))
