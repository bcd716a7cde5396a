"""Levels of a few bits: by hand, round trips, predicted sizes, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.compression.wire.block import MODES, Block
from fedreuse.compression.wire.envelope import Envelope
from fedreuse.compression.wire.modes.innovation import INNOVATION, innovation_block
from fedreuse.compression.wire.parcel import Parcel
from fedreuse.core.errors import WireError
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec


def schema_of(size: int, dtype: str = "float64") -> Schema:
    return Schema((TensorSpec("a", (size,), dtype),))


def decoded(flat: np.ndarray, bits: int) -> np.ndarray:
    parcel = Parcel((innovation_block(flat, bits),), {"bits": bits})
    return parcel.decode(schema_of(len(flat), str(flat.dtype))).values


def envelope(*fields: np.ndarray, bits: object = 3, count: int = 3) -> bytes:
    """A message whose one tensor has these fields."""
    return Envelope(
        "update", 1, 1, parcels={"update": Parcel((Block(INNOVATION, count, fields),), {"bits": bits})}
    ).to_bytes()


def test_four_levels_by_hand() -> None:
    # R = 3, steps of 2: -3, -1, 1, 3; 2 is halfway and goes up; codes 3, 0, 2, 3 in two bits each, from the low end
    flat = np.array([3.0, -3.0, 0.5, 2.0])
    block = innovation_block(flat, 2)
    assert block.fields[0].tolist() == [3.0]
    assert block.fields[1].tolist() == [0b11_10_00_11]
    assert decoded(flat, 2).tolist() == [3.0, -3.0, 1.0, 3.0]


def test_one_bit_is_the_sign() -> None:
    assert decoded(np.array([5.0, -1.0, 2.0]), 1).tolist() == [5.0, -5.0, 5.0]


def test_the_code_is_part_of_the_format() -> None:
    assert MODES[8] is INNOVATION


def test_zeros_are_one_scale() -> None:
    block = innovation_block(np.zeros(100), 4)
    assert block.field_bytes == 4
    assert not decoded(np.zeros(100), 4).any()
    assert decoded(np.zeros(0), 4).shape == (0,)


def test_the_scale_is_rounded_up() -> None:
    # 0.1 is above its float32 neighbour 0.1 only if rounded down: the largest coordinate must stay within the levels
    for largest in (0.1, 0.3, 1 / 3, 1e-42, 1e-300):
        block = innovation_block(np.array([largest, -largest]), 8)
        assert float(block.fields[0][0]) >= largest
        assert np.abs(decoded(np.array([largest, -largest]), 8)).max() >= largest * (1 - 1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39])
def test_what_does_not_fit_arrives_as_not_finite(bad: float) -> None:
    assert not np.isfinite(decoded(np.array([1.0, bad, 2.0]), 4)).any()


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([np.float32, np.float64]).flatmap(
        lambda kind: arrays(kind, st.integers(0, 40), elements=st.floats(-1e6, 1e6, width=32))
    ),
    st.integers(1, 32),
)
def test_round_trip_size_and_error(flat: np.ndarray, bits: int) -> None:
    schema = schema_of(len(flat), str(flat.dtype))
    parcel = Parcel((innovation_block(flat, bits),), {"bits": bits})
    sent = Envelope("update", 1, 1, parcels={"update": parcel})
    data = sent.to_bytes()
    assert len(data) == sent.size()
    again = Envelope.from_bytes(data, ModelSchema(schema))
    assert again.to_bytes() == data
    here, there = (one.parcels["update"].decode(schema).values for one in (sent, again))  # type: ignore[union-attr]
    assert here.tobytes() == there.tobytes()
    radius = float(np.abs(flat).max(initial=0.0))
    assert parcel.field_bytes == (4 if radius == 0 else 4 + -(-bits * len(flat) // 8))
    np.testing.assert_allclose(here, flat, rtol=0, atol=radius / (2**bits - 1) * (1 + 1e-6) + 1e-6 * radius)


SCALE = np.array([1.0], "<f4")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (envelope(SCALE, np.array([0, 0b10], np.uint8)), "beyond the last"),
        (envelope(SCALE, np.array([0], np.uint8)), "ends 1 bytes early"),
        (envelope(SCALE, np.array([0, 0, 0], np.uint8)), "left over"),
        (envelope(SCALE), "ends 2 bytes early"),
        (envelope(np.array([0.0], "<f4"), np.array([0, 0], np.uint8)), "left over"),
        (envelope(np.array([-1.0], "<f4"), np.array([0, 0], np.uint8)), "scale must not be negative"),
        (envelope(SCALE, np.array([0, 0], np.uint8), bits=0), "note bits"),
        (envelope(SCALE, np.array([0, 0], np.uint8), bits=33), "note bits"),
        (envelope(SCALE, np.array([0, 0], np.uint8), bits=True), "note bits"),
        (envelope(SCALE, np.array([0, 0], np.uint8), bits="3"), "note bits"),
        (envelope(SCALE, np.array([0, 0], np.uint8), bits=None), "notes of a wrong type"),
    ],
)
def test_malformed_levels_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        Envelope.from_bytes(data, ModelSchema(schema_of(3)))


def test_whole_numbers_have_no_levels() -> None:
    with pytest.raises(WireError, match="int64 cannot be written as levels"):
        Envelope.from_bytes(envelope(SCALE, np.array([0, 0], np.uint8)), ModelSchema(schema_of(3, "int64")))


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_is_a_scale_that_is_no_number(bad: float) -> None:
    (scale,) = innovation_block(np.array([1.0, bad]), 3).fields
    assert np.isnan(scale).tolist() == [True]
