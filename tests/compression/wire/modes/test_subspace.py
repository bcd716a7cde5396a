"""Mode `subspace`: rows drawn from the seed, pinned; lies and damage."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.compression.codecs.subspace import Subspace
from fedreuse.compression.wire.modes.seeded import drawn_positions
from fedreuse.compression.wire.modes.subspace import drawn_rows
from tests.crossing import assert_only_wire_errors, assert_refused, damages, encode, tensor, with_fields

NUMBERS = st.floats(-1000, 1000, width=32)


def test_rows_are_the_positions_of_the_next_seed() -> None:
    # signs use the seed itself; PCG64 of 7 keeps [3, 4, 6, 11, 12] of 20, as the test of `rand_k` pins it
    assert drawn_rows(np.uint64(6), 20, 5).tolist() == [3, 4, 6, 11, 12]
    assert drawn_rows(np.uint64(2**64 - 1), 20, 5).tolist() == drawn_positions(np.uint64(0), 20, 5).tolist()


@given(arrays(np.float32, st.integers(70, 120), elements=NUMBERS), damages())
def test_damage_is_a_wire_error_or_harmless(values: np.ndarray, damage: list[tuple[float, int]]) -> None:
    assert_only_wire_errors(encode(Subspace(0.25, bucket=16), tensor(values)), tensor(values).schema, damage)


def test_lies_are_refused() -> None:
    tensors = tensor(np.arange(40))
    parcel = encode(Subspace(0.25, bucket=16), tensors)
    assert_refused(with_fields(parcel, bucket=12), tensors.schema, "a power of two expected")
    assert_refused(with_fields(parcel, unbiased=2), tensors.schema, "unbiased")
    assert_refused(with_fields(parcel, count=17), tensors.schema, "17 rows of 16")
