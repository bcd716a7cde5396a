"""Upper bounds on the size of a valid message, derived from the schema and checked before anything is allocated.

longest list     256 + rows of all tensors, or 1024        a method may name rows, for example to recycle them;
                                                           a link may send a thousand parcels in one
header           4096 + 16 per entry + 128 per tensor      modes and counts of all groups, values, notes
                 + 1024 parcels of 32 + 8 per tensor       broadcasts that a client missed
                 + dense bytes                             values that are numbers
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
"""Bytes of a message before its header."""
MAX_GROUPS = 8
"""Largest number of groups in one message; no method needs more than five."""
MAX_NESTING = 8
"""Largest depth of tuples in a value."""
MAX_PARCELS = 1024
"""Largest number of parcels of one group in one message."""
_LONG_PARCELS = 2
"""Number of dense parcels per group; links that send more parcels keep them together shorter than a dense one."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Largest accepted numbers of entries of a list or map, bytes of a header and bytes of a message."""

    entries: int
    header_bytes: int
    message_bytes: int


def limits_of(schema: ModelSchema) -> Limits:
    """Return the limits of a schema; a transport may refuse longer messages before it reads them."""
    entries = 256 + max(schema.num_rows, MAX_PARCELS)
    header = 4096 + 16 * entries + 128 * schema.num_tensors + MAX_PARCELS * (32 + 8 * schema.num_tensors)
    header += schema.dense_bytes
    parcel = schema.dense_bytes + 5 * schema.size + 8448 * schema.num_tensors
    return Limits(entries, header, FRAME_BYTES + header + MAX_GROUPS * _LONG_PARCELS * parcel)
