"""Some rows of a tensor: every codec works on what is there, bytes are counted, lies are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.top_k import TopK, kept_count
from fedreuse.compression.wire.block import Block, dense_block
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.modes.rows import ROWS, rows_block
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.errors import WireError
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, drop_rows, pick, to_dense
from fedreuse.core.values import flatten

SCHEMA = Schema((TensorSpec("a", (10, 3)), TensorSpec("b", (4,)), TensorSpec("c", ())))
WHOLE = ModelSchema(SCHEMA)


def drawn(number: int = 1) -> Tensors:
    return Tensors(SCHEMA, np.random.default_rng(number).normal(size=SCHEMA.size).astype(np.float32))


def carried(parcel: Parcel) -> Parcel:
    """The parcel on the other side."""
    envelope = Envelope("update", 1, 1, parcels={"update": parcel})
    data = envelope.to_bytes()
    assert len(data) == envelope.size()
    return Envelope.from_bytes(data, WHOLE).parcels["update"]


def test_dropped_rows_by_hand() -> None:
    update = Tensors(SCHEMA, np.arange(35, dtype=np.float32))
    left = drop_rows(update, {"a": range(8), "b": (0, 1, 2, 3)})
    assert [(spec.name, spec.shape, spec.rows) for spec in left.schema] == [("a", (2, 3), (8, 9)), ("c", (), None)]
    np.testing.assert_array_equal(left.values, [24, 25, 26, 27, 28, 29, 34])
    parcel = Dense().encode(left, SCHEMA, np.random.default_rng(0))
    assert [block.mode.name for block in parcel.blocks] == ["rows", "absent", "dense"]
    # rows 8 and 9 of ten: bits 0 and 1 of the second byte; the inner mode is 1, dense
    assert [field.tolist() for field in parcel.blocks[0].fields] == [[0, 3], [1], [24, 25, 26, 27, 28, 29]]
    assert parcel.field_bytes == 2 + 1 + 6 * 4 + 4
    arrived = carried(parcel).decode(SCHEMA)
    np.testing.assert_array_equal(arrived.index, [24, 25, 26, 27, 28, 29, 30])
    assert [spec.name for spec in arrived.schema] == ["a", "c"]
    assert [spec.rows for spec in arrived.schema] == [None, None]


def test_nothing_left_is_an_empty_group() -> None:
    nothing = drop_rows(pick(drawn(), ("a",)), {"a": range(10)})
    assert len(nothing.schema) == 0
    assert carried(Dense().encode(nothing, SCHEMA, np.random.default_rng(0))).decode(SCHEMA).values.size == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", codecs.names())
@given(st.sets(st.integers(0, 9), min_size=1, max_size=9), st.integers(0, 100))
@settings(max_examples=25, deadline=None)
def test_every_codec_sees_only_the_rows_that_are_there(name: str, gone: set[int], number: int) -> None:
    """What arrives is what the codec makes of a smaller tensor, put back in its place."""
    codec: Codec = codecs.parse(name, "codec")
    left = drop_rows(pick(drawn(number), ("a",)), {"a": gone})
    kept = [row for row in range(10) if row not in gone]
    parcel = codec.encode(left, SCHEMA, np.random.default_rng(5))
    arrived = to_dense(carried(parcel).decode(SCHEMA))["a"]
    small = Schema((TensorSpec("a", (len(kept), 3)),))
    alone = codec.encode(Tensors(small, left.values), small, np.random.default_rng(5))
    np.testing.assert_array_equal(arrived[kept], to_dense(alone.decode(small))["a"])
    assert not arrived[sorted(gone)].any()
    assert parcel.field_bytes == alone.field_bytes + 2 + 1


def test_top_k_takes_its_share_of_what_is_left() -> None:
    left = drop_rows(drawn(), {"a": range(5)})
    block = TopK(0.2).encode(left, SCHEMA, np.random.default_rng(0)).blocks[0]
    assert block.count == kept_count(15, 0.2) == 3


def test_a_state_cannot_hold_some_rows() -> None:
    with pytest.raises(TypeError, match="not part of the model"):
        flatten(drop_rows(drawn(), {"a": (1,)}), WHOLE)


def changed(block: Block) -> bytes:
    parcel = Dense().encode(drawn(), SCHEMA, np.random.default_rng(0))
    return Envelope("x", 1, 1, parcels={"update": Parcel((block, *parcel.blocks[1:]))}).to_bytes()


@pytest.mark.parametrize(
    ("fields", "count", "why"),
    [
        ([[0, 3], [1], [1.0] * 6], 6, None),
        ([[0, 4], [1], [1.0] * 3], 3, "beyond the last of 10"),
        ([[0, 3], [1], [1.0] * 5], 5, "5 kept coordinates of 6"),
        ([[0, 3], [1], [1.0] * 7], 7, "7 kept coordinates of 6"),
        ([[0, 3], [0]], 6, "mode 0 cannot represent"),
        ([[0, 3], [10], [0, 3], [1]], 6, "mode 10 cannot represent"),
        ([[0, 3], [255], [1.0] * 6], 6, "mode 255 cannot represent"),
        ([[0, 0], [1]], 0, "no row is marked"),
    ],
)
def test_lies_are_refused(fields: list[list[float]], count: int, why: str | None) -> None:
    arrays = tuple(
        np.array(field, np.uint8 if all(isinstance(n, int) for n in field) else np.float32) for field in fields
    )
    data = changed(Block(ROWS, count, arrays))
    if why is None:
        Envelope.from_bytes(data, WHOLE)
    else:
        with pytest.raises(WireError, match=why):
            Envelope.from_bytes(data, WHOLE)


def test_a_single_number_has_no_rows() -> None:
    parcel = Dense().encode(drawn(), SCHEMA, np.random.default_rng(0))
    lie = Parcel((*parcel.blocks[:2], rows_block(dense_block(np.ones(1, np.float32)), (0,), 1)))
    with pytest.raises(WireError, match="a scalar has no rows"):
        Envelope.from_bytes(Envelope("x", 1, 1, parcels={"update": lie}).to_bytes(), WHOLE)
