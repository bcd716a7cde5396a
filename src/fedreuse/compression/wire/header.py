"""The header of a message: kind, keep, values, and descriptions of the groups' arrays; untrusted when read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgpack

from fedreuse.compression.wire.block import Block, Notes, Take
from fedreuse.compression.wire.limits import MAX_GROUPS, MAX_NESTING, MAX_PARCELS, Limits
from fedreuse.compression.wire.modes import MODES
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fedreuse.core.schema import Schema, TensorSpec

__all__ = ["describe_parcel", "is_values", "named_groups", "read_parcel", "unpack_header"]

_EMPTY_PARCEL: tuple[Any, ...] = (b"", (), {})


def unpack_header(header: memoryview, limits: Limits) -> tuple[Any, Any, Any, Any]:
    """Parse the header's four entries; lists longer than the schema allows are refused before they are allocated."""
    if len(header) > limits.header_bytes:
        raise WireError(f"a header of {len(header)} bytes; headers of this model have at most {limits.header_bytes}")
    most = min(limits.entries, len(header))  # every entry takes at least a byte
    try:
        entries = msgpack.unpackb(header, use_list=False, max_array_len=most, max_map_len=most, max_ext_len=0)
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError) as error:
        raise WireError(f"malformed header: {error or type(error).__name__}") from None
    if not isinstance(entries, tuple) or len(entries) != 4:
        raise WireError("malformed header: kind, keep, values and groups expected")
    kind, keep, values, groups = entries
    return kind, keep, values, groups


def named_groups(groups: object) -> tuple[tuple[str, Any], ...]:
    """Check the groups of a header and return their names and entries."""
    if not isinstance(groups, tuple) or len(groups) > MAX_GROUPS:
        raise WireError(f"malformed header: a list of at most {MAX_GROUPS} groups expected")
    if not all(isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], str) for group in groups):
        raise WireError("malformed header: groups must have names")
    if len({name for name, _ in groups}) != len(groups):
        raise WireError("malformed header: names of groups must be unique")
    return groups


def is_values(values: Mapping[Any, Any]) -> bool:
    """Return whether all keys are strings and all values are numbers, bools, strings, tuples, or bytes of numbers."""
    return all(isinstance(name, str) and (_is_value(value) or _is_numbers(value)) for name, value in values.items())


def _is_numbers(value: object) -> bool:
    return type(value) is bytes and len(value) % 4 == 0


def _is_value(value: object, depth: int = 0) -> bool:
    if type(value) is tuple:
        return depth < MAX_NESTING and all(_is_value(inner, depth + 1) for inner in value)
    return isinstance(value, bool | int | float | str)


def describe_parcel(parcel: Parcel | None) -> list[Any] | None:
    """Return modes, counts, notes and further parcels, without empty entries at the end; None for no parcel."""
    if parcel is None:
        return None
    modes = bytes(block.mode.code for block in parcel.blocks)
    counts = [block.count for block in parcel.blocks if block.mode.has_count]
    described = [modes, counts, dict(parcel.notes), *map(describe_parcel, parcel.more)]
    while described and not described[-1]:
        described.pop()
    return described


def read_parcel(entry: object, schema: Schema, take: Take) -> Parcel | None:
    """Read a parcel, given its description and the arrays of the message."""
    if entry is None:
        return None
    first, more = _read_single(entry, schema, take)
    if len(more) >= MAX_PARCELS:
        raise WireError(f"malformed header: {len(more) + 1} parcels of one group, {MAX_PARCELS} are allowed")
    following = [_read_single(inner, schema, take) for inner in more]
    if any(inner for _, inner in following):
        raise WireError("malformed header: further parcels must not contain further parcels")
    return replace(first, more=tuple(parcel for parcel, _ in following))


def _read_single(entry: object, schema: Schema, take: Take) -> tuple[Parcel, tuple[object, ...]]:
    """Read one parcel; also return the descriptions of those that follow it."""
    if not isinstance(entry, tuple):
        raise WireError("malformed header: a parcel is a list of modes, counts, notes and further parcels")
    modes, counts, notes, *more = entry + _EMPTY_PARCEL[len(entry) :]
    if not isinstance(modes, bytes) or not isinstance(counts, tuple):
        raise WireError("malformed header: modes or counts of a wrong type")
    if len(modes) != len(schema):
        raise WireError(f"{len(modes)} tensors in the message, but {len(schema)} in the schema")
    if not isinstance(notes, dict) or not is_values(notes) or bytes in map(type, notes.values()):
        raise WireError("malformed header: notes of a wrong type")
    left = iter(counts)
    blocks = tuple(_read_block(spec, code, left, notes, take) for spec, code in zip(schema, modes, strict=True))
    if any(True for _ in left):
        raise WireError("more counts than sparse tensors")
    return Parcel(blocks, dict(notes)), tuple(more)


def _read_block(spec: TensorSpec, code: int, counts: Iterator[object], notes: Notes, take: Take) -> Block:
    mode = MODES.get(code)
    if mode is None:
        raise WireError(f"{spec.name}: unknown mode {code}")
    count = next(counts, None) if mode.has_count else spec.size
    if type(count) is not int or not 0 <= count <= spec.size:
        text = "a list of" if isinstance(count, tuple | dict) else repr(count)  # it may be too deep to print
        raise WireError(f"{spec.name}: {text} kept coordinates of {spec.size}")
    return Block(mode, count, mode.read(take, spec, count, notes))
