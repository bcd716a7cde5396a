"""A state as bytes: safetensors for the arrays, JSON beside them for the rest; nothing is executed on the way back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

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


def write_state(tree: object, schema: ModelSchema) -> bytes:
    """Every array and every plain value of a state."""
    plain, arrays = flatten(tree, schema)
    text = np.frombuffer(json.dumps({"schema": schema.digest, "tree": plain}).encode(), np.uint8)
    packed: bytes = save_arrays({_PLAIN: text, **{str(at): np.ascontiguousarray(a) for at, a in enumerate(arrays)}})
    return packed


def read_state(data: bytes, schema: ModelSchema, where: str) -> Any:
    """The state again; a damaged or foreign one is refused with the name of the place."""
    try:
        arrays = load_arrays(data)
        document = json.loads(arrays.pop(_PLAIN).tobytes())
        if document["schema"] != schema.digest:
            raise RunDirectoryError(
                f"{where} belongs to another network: its tensors differ from those of this configuration; "
                "choose another run directory, or the configuration it was written with"
            )
        return unflatten(document["tree"], [arrays[str(at)] for at in range(len(arrays))], schema)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise RunDirectoryError(
            f"{where} is not a readable checkpoint ({error}); delete the run directory and start the run again"
        ) from None
