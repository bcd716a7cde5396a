"""Dense: lossless, and as large as the tensors."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.compression.codecs.dense import Dense
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_every_coordinate_at_full_width(dtype: str) -> None:
    schema = Schema((TensorSpec("a", (3, 5), dtype), TensorSpec("b", (), dtype)))
    tensors = Tensors(schema, np.arange(16).astype(dtype))
    parcel = Dense().encode(tensors, schema, RNG)
    assert parcel.field_bytes == 16 * np.dtype(dtype).itemsize == schema.dense_bytes
    assert {block.mode.name for block in parcel.blocks} == {"dense"}
    assert is_equal(parcel.decode(schema), tensors)


def test_sparse_tensors_become_dense() -> None:
    schema = Schema((TensorSpec("a", (4,)),))
    parcel = Dense().encode(Tensors(schema, np.ones(1, np.float32), np.array([2], np.int32)), schema, RNG)
    np.testing.assert_array_equal(parcel.decode(schema).values, [0, 0, 1, 0])


def test_what_travels_is_not_copied() -> None:
    schema = Schema((TensorSpec("a", (4,)),))
    tensors = Tensors(schema, np.ones(4, np.float32))
    assert np.shares_memory(Dense().encode(tensors, schema, RNG).blocks[0].fields[0], tensors.values)
