"""A state as bytes: safetensors for the arrays, JSON beside them for the rest, a CRC-32 at the end.

Nothing is executed on the way back.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from fedreuse.core.values import flatten, unflatten
from fedreuse.errors import RunDirectoryError

if TYPE_CHECKING:
    from fedreuse.schema import ModelSchema

__all__ = ["read_state", "write_state"]

_PLAIN = "plain"
_CHECK_BYTES = 4


def write_state(tree: object, schema: ModelSchema) -> bytes:
    """Every array and every plain value of a state."""
    plain, arrays = flatten(tree, schema)
    text = np.frombuffer(json.dumps({"schema": schema.digest, "tree": plain}).encode(), np.uint8)
    whole = {str(at): np.ascontiguousarray(array).reshape(array.shape) for at, array in enumerate(arrays)}
    packed: bytes = save_arrays({_PLAIN: text, **whole})
    return packed + crc32(packed).to_bytes(_CHECK_BYTES, "little")


def read_state(data: bytes, schema: ModelSchema, where: str) -> Any:
    """The state again; a damaged or foreign one is refused with the name of the place."""
    try:
        packed, check = data[:-_CHECK_BYTES], data[-_CHECK_BYTES:]
        if crc32(packed).to_bytes(_CHECK_BYTES, "little") != check:
            raise ValueError("its checksum does not fit")
        arrays = load_arrays(packed)
        document = json.loads(arrays.pop(_PLAIN).tobytes())
        if document["schema"] != schema.digest:
            raise RunDirectoryError(
                f"{where} belongs to another network: its tensors differ from those of this configuration; "
                "choose another run directory, or the configuration it was written with"
            )
        return unflatten(document["tree"], [arrays[str(at)] for at in range(len(arrays))], schema)
    except (SafetensorError, LookupError, AttributeError, ValueError, TypeError, RecursionError) as error:
        raise RunDirectoryError(
            f"{where} is not a readable checkpoint ({error}); delete the run directory and start the run again"
        ) from None
