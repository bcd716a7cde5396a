"""How large a message can honestly be: bounds that follow from the schema, checked before anything is allocated.

longest list     256 + rows of all tensors, or 1024        a method may name rows, for example to recycle them
                                                           a link may send a thousand parcels in one
header           4096 + 16 per entry + 128 per tensor      modes and counts of all groups, values, notes
                 + 1024 parcels of 32 + 8 per tensor       broadcasts that a client missed
one parcel       dense bytes + 5 per coordinate            pairs: 4 for the position; rows: marks
                 + 8448 per tensor                         a grid's table of code lengths, scales, lengths
a message        frame, header, and 8 groups of 2 parcels
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedreuse.core.schema import ModelSchema

__all__ = ["FRAME_BYTES", "MAX_GROUPS", "MAX_NESTING", "MAX_PARCELS", "Limits", "limits_of"]

FRAME_BYTES = 27
MAX_GROUPS = 8
"""Groups in one message; no method needs more than five."""
MAX_NESTING = 8
"""Lists within lists in a value."""
MAX_PARCELS = 1024
"""Parcels of one group in one message."""
_LONG_PARCELS = 2
"""Of them not sparse; a link that sends more sends what is shorter than one that is dense."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a receiver of one schema accepts: entries of a list or map, bytes of the header, bytes of a message."""

    entries: int
    header_bytes: int
    message_bytes: int


def limits_of(schema: ModelSchema) -> Limits:
    """The limits of a schema; a transport may refuse what is longer before it reads it."""
    entries = 256 + max(schema.num_rows, MAX_PARCELS)
    header = 4096 + 16 * entries + 128 * schema.num_tensors + MAX_PARCELS * (32 + 8 * schema.num_tensors)
    parcel = schema.dense_bytes + 5 * schema.size + 8448 * schema.num_tensors
    return Limits(entries, header, FRAME_BYTES + header + MAX_GROUPS * _LONG_PARCELS * parcel)
