"""Serialization of states: safetensors for the arrays, JSON for the rest (as one of the arrays), CRC-32 at the end.

Reading executes no code and copies nothing: the arrays are views of the bytes or of the mapped file.
"""

from __future__ import annotations

import json
import mmap
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from fedreuse.core.bounded import parse_json
from fedreuse.core.errors import RunDirectoryError
from fedreuse.core.formats import CLIENT_STORE
from fedreuse.core.values import flatten, unflatten

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fedreuse.core.schema import ModelSchema

__all__ = ["map_state", "read_state", "state_pieces", "write_state"]

_PLAIN = "plain"
_CHECK_BYTES = 4
_LENGTH_BYTES = 8
_DTYPES = {
    "U64": "<u8", "I64": "<i8", "F64": "<f8", "F32": "<f4", "U32": "<u4", "I32": "<i4", "F16": "<f2", "U16": "<u2",
    "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?",
}  # fmt: skip
"""Types by name, in the order in which the safetensors library writes arrays: the widest first, so all are aligned."""
_NAMES = {np.dtype(code).str: name for name, code in _DTYPES.items()}
_PLACES = {code: place for place, code in enumerate(_NAMES)}


def write_state(tree: object, schema: ModelSchema, owner: str = "") -> bytes:
    """Return the bytes of a state: its arrays and plain values.

    Args:
        tree: The state.
        schema: The model's schema.
        owner: Run, client and place that the state belongs to; part of the checksum, so that a file of another run or
            client is not accepted here.
    """
    return b"".join(state_pieces(tree, schema, owner))


def state_pieces(tree: object, schema: ModelSchema, owner: str = "") -> Iterator[bytes | memoryview]:
    """Yield the bytes of `write_state` piece by piece; arrays are views, so that nothing is copied."""
    plain, arrays = flatten(tree, schema)
    text = np.frombuffer(
        json.dumps({"format": CLIENT_STORE.version, "schema": schema.digest, "tree": plain}).encode(), np.uint8
    )
    named = {_PLAIN: text, **{str(at): array for at, array in enumerate(arrays)}}
    order = sorted(named, key=lambda name: (_PLACES[named[name].dtype.str], name))
    entries, at = {}, 0
    for name in order:
        array, size = named[name], named[name].nbytes
        entries[name] = {"dtype": _NAMES[array.dtype.str], "shape": list(array.shape), "data_offsets": [at, at + size]}
        at += size
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % _LENGTH_BYTES)
    checksum = crc32(owner.encode())
    start: list[bytes | memoryview] = [len(header).to_bytes(_LENGTH_BYTES, "little"), header]
    for piece in chain(start, (_contiguous(named[name]) for name in order)):
        checksum = crc32(piece, checksum)
        yield piece
    yield checksum.to_bytes(_CHECK_BYTES, "little")


def _contiguous(array: np.ndarray) -> memoryview:
    """Return the array's bytes in order; the raw buffer must be contiguous."""
    whole = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return whole.data


def read_state(data: bytes | memoryview, schema: ModelSchema, where: str, owner: str = "") -> Any:
    """Return the state stored in bytes; `owner` as in `write_state`.

    Raises:
        RunDirectoryError: the bytes are damaged, or belong to another network; the message names `where`.
    """
    try:
        view = memoryview(data)
        packed, check = view[:-_CHECK_BYTES], view[-_CHECK_BYTES:]
        if _check(packed, owner) != check:
            raise ValueError(
                "wrong checksum: damaged, or of another run, client or round" if owner else "wrong checksum"
            )
        arrays = _views(packed)
        document = parse_json(arrays.pop(_PLAIN).tobytes())
        CLIENT_STORE.check(document.get("format"), where)
        if document["schema"] != schema.digest:
            raise RunDirectoryError(
                f"{where} belongs to another network: its tensors differ from those of this configuration; "
                "choose another run directory, or the configuration it was written with"
            )
        return unflatten(document["tree"], [arrays[str(at)] for at in range(len(arrays))], schema)
    except (LookupError, AttributeError, ValueError, TypeError, RecursionError) as error:
        raise RunDirectoryError(
            f"{where} is not a readable checkpoint ({error}); delete the run directory and start the run again"
        ) from None


def map_state(path: Path, schema: ModelSchema, owner: str = "") -> Any:
    """Return the state in a file; its arrays are mapped, and read from disk when they are used."""
    with path.open("rb") as file:
        try:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except ValueError:  # an empty file cannot be mapped
            data = memoryview(b"")
    return read_state(data, schema, str(path), owner)


def _check(packed: bytes | memoryview, owner: str) -> bytes:
    return crc32(packed, crc32(owner.encode())).to_bytes(_CHECK_BYTES, "little")


def _views(packed: memoryview) -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file as views."""
    start = _LENGTH_BYTES + int.from_bytes(packed[:_LENGTH_BYTES], "little")
    header = parse_json(packed[_LENGTH_BYTES:start])
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        dtype, (begin, end) = np.dtype(_DTYPES[entry["dtype"]]), entry["data_offsets"]
        count = prod(entry["shape"])
        if end - begin != count * dtype.itemsize or not 0 <= begin <= end <= len(packed) - start:
            raise ValueError(f"array {name} has wrong offsets")
        flat = np.frombuffer(packed, dtype, count, start + begin) if count else np.empty(0, dtype)
        arrays[name] = flat.reshape(entry["shape"])
    return arrays
