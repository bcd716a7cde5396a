"""What tests of codecs share: a few numbers as a tensor, its way over the wire, and messages that lie."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from fedreuse.compression.codecs.codec import Codec
from fedreuse.compression.wire.block import Block
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.errors import WireError
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, to_dense


class Draws:
    """Stands for a generator where a test wants to say what is drawn."""

    def __init__(self, *numbers: float) -> None:
        self._numbers = np.array(numbers)

    def random(self, size: int) -> np.ndarray:
        return np.broadcast_to(self._numbers, size)

    def integers(self, low: int, high: int, size: int, dtype: Any) -> np.ndarray:
        assert ((self._numbers >= low) & (self._numbers < high)).all()
        return np.broadcast_to(self._numbers.astype(dtype), size)


def tensor(values: Any, dtype: str = "float32") -> Tensors:
    """One tensor of these numbers."""
    flat = np.asarray(values, dtype).reshape(-1)
    return Tensors(Schema((TensorSpec("layer.weight", (len(flat),), dtype),)), flat)


def encode(codec: Codec, tensors: Tensors, seed: int = 0) -> Parcel:
    return codec.encode(tensors, tensors.schema, np.random.default_rng(seed))


def arrived(parcel: Parcel, schema: Schema) -> Parcel:
    """The parcel after its way through bytes; predicted and real sizes are the same."""
    envelope = Envelope("update", 1, 1, parcels={"update": parcel})
    data = envelope.to_bytes()
    assert len(data) == envelope.size()
    again = Envelope.from_bytes(data, ModelSchema(schema))
    assert again.to_bytes() == data
    found = again.parcels["update"]
    assert found is not None
    return found


def decoded(codec: Codec, values: Any, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    """What a receiver makes of some numbers, over the wire and not."""
    tensors = tensor(values, dtype)
    parcel = encode(codec, tensors, seed)
    there = parcel.decode(tensors.schema)
    assert is_equal(arrived(parcel, tensors.schema).decode(tensors.schema), there)
    return to_dense(there).values


def assert_refused(parcel: Parcel, schema: Schema, match: str) -> None:
    """Reading or decoding ends in a WireError."""
    with pytest.raises(WireError, match=match):
        arrived(parcel, schema).decode(schema)


def with_fields(parcel: Parcel, *fields: np.ndarray, count: int | None = None, **notes: Any) -> Parcel:
    """The same parcel, whose only block has other fields, another count, or other notes."""
    block = parcel.blocks[0]
    changed = Block(block.mode, block.count if count is None else count, fields or block.fields)
    return replace(parcel, blocks=(changed,), notes={**parcel.notes, **notes})


@st.composite
def damages(draw: st.DrawFn) -> list[tuple[float, int]]:
    """Where, as a share of the arrays, and what is written there instead; -1 cuts the message off."""
    return draw(st.lists(st.tuples(st.floats(0, 0.999), st.integers(-1, 255)), min_size=1, max_size=4))


def assert_only_wire_errors(parcel: Parcel, schema: Schema, damage: list[tuple[float, int]]) -> None:
    """A message with damaged arrays and a right checksum is refused, or still gives tensors of the right form."""
    block = parcel.blocks[0]
    raw = bytearray(b"".join(field.tobytes() for field in block.fields))
    for share, byte in damage:
        if raw and byte < 0:
            del raw[int(share * len(raw)) :]
        elif raw:
            raw[int(share * len(raw))] = byte
    damaged = Block(block.mode, block.count, (np.frombuffer(bytes(raw), np.uint8),))
    try:
        found = arrived(replace(parcel, blocks=(damaged,)), schema)
        with np.errstate(all="ignore"):
            tensors = found.decode(schema)
    except WireError:
        return
    assert to_dense(tensors).values.shape == (schema.size,)
