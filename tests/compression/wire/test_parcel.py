"""Parcels: a block per tensor, absent ones included, dense or sparse as they came."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.wire.block import ABSENT, sparse_block
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core import mapped
from fedreuse.core.mapped import is_mapped
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, pick

SCHEMA = Schema((TensorSpec("a", (40,)), TensorSpec("b", (2,)), TensorSpec("c", (3,))))
TENSORS = Tensors(SCHEMA, np.arange(45, dtype=np.float32))


def first_only(flat: np.ndarray):
    """Keep the first coordinate."""
    return sparse_block(np.zeros(1, np.int32), flat[:1], len(flat))


def test_dense_there_and_back() -> None:
    parcel = pack_tensors(TENSORS, SCHEMA)
    # 45 * 4
    assert parcel.field_bytes == 180
    decoded = parcel.decode(SCHEMA)
    assert not decoded.is_sparse
    assert is_equal(decoded, TENSORS)


def test_sparse_there_and_back() -> None:
    parcel = pack_tensors(TENSORS, SCHEMA, first_only)
    # pairs of 8 for a (bitmap: 4 + 5); b: bitmap 4 + 1 = 5 of pairs 8, dense 8; c: bitmap 5
    assert [block.field_bytes for block in parcel.blocks] == [8, 5, 5]
    decoded = parcel.decode(SCHEMA)
    assert decoded.is_sparse
    np.testing.assert_array_equal(decoded.index, [0, 40, 42])
    np.testing.assert_array_equal(decoded.values, [0, 40, 42])


def test_mixed_modes_are_sparse_together() -> None:
    parcel = pack_tensors(TENSORS, SCHEMA, lambda flat: first_only(flat) if len(flat) == 40 else sparse_block(
        np.arange(len(flat), dtype=np.int32), flat, len(flat)
    ))  # fmt: skip
    decoded = parcel.decode(SCHEMA)
    np.testing.assert_array_equal(decoded.index, [0, 40, 41, 42, 43, 44])


def test_absent_tensors_leave_no_bytes_and_are_not_invented() -> None:
    part = pick(TENSORS, ("c", "a"))
    parcel = pack_tensors(part, SCHEMA)
    assert [block.mode is ABSENT for block in parcel.blocks] == [False, True, False]
    assert parcel.field_bytes == 43 * 4
    decoded = parcel.decode(SCHEMA)
    assert [spec.name for spec in decoded.schema] == ["a", "c"]
    assert is_equal(decoded, part)


def test_an_empty_schema() -> None:
    empty = Tensors(Schema(), np.empty(0, np.float32))
    parcel = pack_tensors(empty, Schema())
    assert parcel.field_bytes == 0
    assert is_equal(parcel.decode(Schema()), empty)


def test_notes_and_a_second_parcel_travel_along() -> None:
    second = pack_tensors(TENSORS, SCHEMA, first_only)
    parcel = Parcel(pack_tensors(TENSORS, SCHEMA).blocks, {"bits": 2}, (second,))
    assert parcel.field_bytes == 180 + 18
    assert len(parcel.all_blocks()) == 6
    assert is_equal(parcel.decode(SCHEMA), TENSORS)


def test_decoded_values_cannot_be_written_to() -> None:
    for parcel in (pack_tensors(TENSORS, SCHEMA), pack_tensors(TENSORS, SCHEMA, first_only)):
        assert not parcel.decode(SCHEMA).values.flags.writeable


def test_a_large_dense_message_is_decoded_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "_LARGE_BYTES", 100)
    schema = ModelSchema(SCHEMA, Schema(), Schema())
    data = Envelope("update", 1, 1, parcels={"update": pack_tensors(TENSORS, SCHEMA)}).spool()
    decoded = Envelope.from_bytes(data, schema).parcels["update"].decode(SCHEMA)
    assert is_mapped(decoded.values)
    assert is_equal(decoded, TENSORS)
    # tensors that are absent in between leave no gap, and sparse ones are joined as before
    some = Envelope("update", 1, 1, parcels={"update": pack_tensors(pick(TENSORS, ["a", "c"]), SCHEMA)}).spool()
    assert is_equal(Envelope.from_bytes(some, schema).parcels["update"].decode(SCHEMA), pick(TENSORS, ["a", "c"]))
