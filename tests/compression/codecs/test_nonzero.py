"""Nonzero: lossless to the bit, and small where there is little."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fedreuse.compression.codecs.nonzero import Nonzero
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal, zeros

SCHEMA = Schema((TensorSpec("a", (320,)), TensorSpec("b", (4,))))
RNG = np.random.default_rng(0)


def test_bytes_by_hand() -> None:
    flat = np.zeros(324, np.float32)
    flat[[3, 300]] = 1
    parcel = Nonzero().encode(Tensors(SCHEMA, flat), SCHEMA, RNG)
    # a: two pairs of 8 (bitmap: 8 + 40); b: nothing kept, a pair list of length 0
    assert [(block.mode.name, block.field_bytes) for block in parcel.blocks] == [("pairs", 16), ("pairs", 0)]


def test_zeros_cost_nothing() -> None:
    assert Nonzero().encode(zeros(SCHEMA), SCHEMA, RNG).field_bytes == 0


def test_a_negative_zero_is_a_value() -> None:
    flat = np.zeros(324, np.float32)
    flat[7] = -0.0
    tensors = Tensors(SCHEMA, flat)
    assert is_equal(Nonzero().encode(tensors, SCHEMA, RNG).decode(SCHEMA), tensors)


@given(
    st.binary(min_size=96, max_size=96),
    st.binary(min_size=3, max_size=3),
    st.sampled_from(["float32", "float64", "int64"]),
)
@settings(max_examples=80, deadline=None)
def test_lossless_for_any_bits(bits: bytes, marks: bytes, dtype: str) -> None:
    flat = np.frombuffer(bits, dtype).copy()
    flat[np.unpackbits(np.frombuffer(marks, np.uint8))[: len(flat)] == 1] = 0
    schema = Schema((TensorSpec("a", (len(flat),), dtype),))
    tensors = Tensors(schema, flat)
    assert is_equal(Nonzero().encode(tensors, schema, RNG).decode(schema), tensors)
