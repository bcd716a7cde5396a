"""Mode `factors`: the sum written out, the same bits whatever is summed at once, lies and damage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.compression.codecs.low_rank import LowRank
from fedreuse.compression.wire.modes import factors
from fedreuse.compression.wire.modes.factors import factors_block, factors_bytes, matrix_shape
from fedreuse.core.schema import TensorSpec
from tests.crossing import assert_only_wire_errors, assert_refused, damages, encode, tensor, with_fields
from tests.references.low_rank import summed

NUMBERS = st.floats(-1000, 1000, width=32)


def test_shapes() -> None:
    assert [matrix_shape(shape) for shape in ((), (5,), (4, 3), (8, 3, 2, 2))] == [(1, 1), (5, 1), (4, 3), (8, 12)]


def test_a_sum_by_hand() -> None:
    # 2 (1, -7) (3, 0, 1)^T + 0.5 (2, 2) (1, 1, -1)^T
    left, right = np.array([[1, -7], [2, 2]]), np.array([[3, 0, 1], [1, 1, -1]])
    block = factors_block(np.array([2.0, 0.5]), left, right)
    values = block.mode.decode(block, TensorSpec("w", (2, 3)), {})[1]
    assert values.tolist() == [7.0, 1.0, 1.0, -41.0, 1.0, -15.0]
    assert values.tolist() == summed([2.0, 0.5], left, right).reshape(-1).tolist()
    assert block.body_bytes == factors_bytes((2, 3), 2) == 2 * 4 + 5


def test_the_same_bits_whatever_is_summed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    block = factors_block(rng.normal(size=5), rng.integers(-7, 8, (5, 33)), rng.integers(-7, 8, (5, 21)))
    spec = TensorSpec("w", (33, 21))
    whole = block.mode.decode(block, spec, {})[1]
    monkeypatch.setattr(factors, "_BLOCK", 50)
    assert block.mode.decode(block, spec, {})[1].tolist() == whole.tolist()


@given(arrays(np.float32, st.integers(70, 120), elements=NUMBERS), damages())
def test_damage_is_a_wire_error_or_harmless(values: np.ndarray, damage: list[tuple[float, int]]) -> None:
    assert_only_wire_errors(encode(LowRank(0.5), tensor(values)), tensor(values).schema, damage)


def test_lies_are_refused() -> None:
    tensors = tensor(np.arange(40))
    parcel = encode(LowRank(0.5), tensors)
    scales, codes = parcel.blocks[0].fields
    assert_refused(with_fields(parcel, count=2), tensors.schema, "2 products of a matrix of 40 x 1")
    assert_refused(with_fields(parcel, scales, np.zeros_like(codes)), tensors.schema, "a code below the lowest level")
