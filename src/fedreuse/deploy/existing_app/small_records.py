"""Records of numbers and texts inside a frame: in Flower every record of a message takes a request of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgpack
from flwr.app import ConfigRecord, MetricRecord

from fedreuse.core.errors import WireError

__all__ = ["pack_small", "unpack_small"]

_KINDS: dict[str, type[Any]] = {"c": ConfigRecord, "m": MetricRecord}
_MOST = 1 << 14
"""Largest number of bytes of all packed records; others are sent by Flower, beside the frame."""


def pack_small(records: Mapping[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """Return the packed records (empty if there are none) and those that Flower must send."""
    kind_of = {kind: letter for letter, kind in _KINDS.items()}
    small, others = [], {}
    for name, record in records.items():
        if type(record) in kind_of:
            small.append([name, kind_of[type(record)], dict(record)])
        else:
            others[name] = record
    packed: bytes = msgpack.packb(small) if small else b""
    return (packed, others) if len(packed) <= _MOST else (b"", dict(records))


def unpack_small(packed: object) -> dict[str, Any]:
    """Return packed records by name; raise WireError for malformed bytes."""
    if packed is None or packed == b"":
        return {}
    try:
        if not isinstance(packed, bytes):
            raise TypeError("not bytes")
        return {str(name): _KINDS[kind](values) for name, kind, values in msgpack.unpackb(packed)}
    except (ValueError, TypeError, LookupError, msgpack.UnpackException, RecursionError) as error:
        raise WireError(f"malformed records: {error}") from None
