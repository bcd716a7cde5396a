"""Natural compression: powers of two by hand, right on average, nine bits a coordinate, lies, and a reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.compression.codecs.natural import Natural
from fedreuse.compression.wire.modes.powers import POWERS
from fedreuse.core.randomness import stream
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal
from fedreuse.testing.quadratic import QuadraticFederation
from tests.crossing import Draws, assert_only_wire_errors, assert_refused, damages, decoded, encode, tensor, with_fields
from tests.federation import NOISY, assert_close, build, plain_problem
from tests.references.compressed import compressed_fedavg
from tests.references.natural import natural

every_float = st.floats(width=32, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(("fraction", "wanted"), [(2**22 - 1, 2.0), (2**22, 4.0), (0, 2.0), (2**23 - 1, 4.0)])
def test_three_is_two_or_four(fraction: int, wanted: float) -> None:
    # 3 = 1.5 * 2: its fraction is 2^22 of 2^23, so half of all draws carry it over to 4
    tensors = tensor([3, -3])
    found = Natural().encode(tensors, tensors.schema, Draws(fraction)).decode(tensors.schema)
    assert found.values.tolist() == [wanted, -wanted]


def test_powers_of_two_are_exact() -> None:
    values = np.array([1, -2, 0.25, 2.0**100, -(2.0**-120), 0], np.float32)
    for seed in range(5):
        assert decoded(Natural(), values, seed).tolist() == values.tolist()


def test_right_on_average_and_its_variance() -> None:
    # E|Q(v) - v|^2 <= v^2 / 8, with equality at 4/3 of a power of two
    values = np.array([1.3, -0.7, 5.0, 4 / 3, 1e-3, -900], np.float32)
    tensors = tensor(np.tile(values, 4000))
    rows = encode(Natural(), tensors).decode(tensors.schema).values.reshape(4000, 6).astype(np.float64)
    assert (np.abs(rows.mean(0) - values) <= 4 * rows.std(0) / np.sqrt(4000)).all()
    variance = ((rows - values) ** 2).mean(0) / values.astype(np.float64) ** 2
    assert (variance <= 0.125 * 1.05).all()
    assert variance[3] == pytest.approx(1 / 8, rel=0.05)


def test_subnormal_numbers_are_zero_or_the_smallest_normal_one() -> None:
    small = np.float32(2.0**-127)  # half of the smallest normal number
    tensors = tensor(np.full(4000, small))
    found = encode(Natural(), tensors).decode(tensors.schema).values
    assert set(found.tolist()) == {0.0, 2.0**-126}
    assert found.astype(np.float64).mean() == pytest.approx(small, rel=0.1)


@pytest.mark.parametrize("size", [1, 8, 9, 1000])
def test_nine_bits_a_coordinate(size: int) -> None:
    assert encode(Natural(), tensor(np.ones(size))).field_bytes == size + -(-size // 8)


def test_the_largest_numbers_stay_finite() -> None:
    values = np.array([np.finfo(np.float32).max, -np.finfo(np.float32).max], np.float32)
    assert decoded(Natural(), values).tolist() == [2.0**127, -(2.0**127)]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_arrives_as_such(bad: float) -> None:
    assert np.isfinite(decoded(Natural(), [1, bad, 2])).tolist() == [True, False, True]
    assert np.isfinite(decoded(Natural(), [1, 1e300, 2], dtype="float64")).tolist() == [True, False, True]


def test_whole_numbers_travel_dense() -> None:
    schema = Schema((TensorSpec("count", (3,), "int64"),))
    tensors = Tensors(schema, np.array([1, 2, 2**60 + 1]))
    assert is_equal(encode(Natural(), tensors).decode(schema), tensors)


@pytest.mark.slow
@given(arrays(np.float32, st.integers(1, 60), elements=every_float), st.integers(0, 99))
@settings(max_examples=150, deadline=None)
def test_any_number_goes_to_a_neighbouring_power(values: np.ndarray, seed: int) -> None:
    found, exact = decoded(Natural(), values, seed).astype(np.float64), np.abs(values.astype(np.float64))
    assert (np.signbit(found) == np.signbit(values)).all()
    fraction, _ = np.frexp(np.abs(found))
    assert np.isin(fraction, (0, 0.5)).all()
    is_normal = exact >= 2.0**-126
    assert (np.abs(found)[is_normal] <= 2 * exact[is_normal]).all()
    assert (np.abs(found)[is_normal] > exact[is_normal] / 2).all()
    assert np.isin(np.abs(found)[~is_normal], (0, 2.0**-126)).all()


@pytest.mark.slow
@given(arrays(np.float32, st.integers(1, 40), elements=every_float), damages())
@settings(max_examples=100, deadline=None)
def test_damage_ends_in_a_wire_error_or_in_tensors(values: np.ndarray, damage: list[tuple[float, int]]) -> None:
    tensors = tensor(values)
    assert_only_wire_errors(encode(Natural(), tensors), tensors.schema, damage)


def test_lies_are_refused() -> None:
    tensors = tensor(np.arange(10))
    parcel, schema = encode(Natural(), tensors), tensors.schema
    signs, exponents = parcel.blocks[0].fields
    assert_refused(with_fields(parcel, signs | 0x80, exponents), schema, "beyond the last")
    assert_refused(with_fields(parcel, signs, exponents[:-1]), schema, "early")
    assert_refused(with_fields(parcel, signs, np.append(exponents, np.uint8(3))), schema, "left over")
    assert_refused(parcel, Schema((TensorSpec("n", (10,), "int64"),)), "int64 cannot be written as powers of two")
    assert parcel.blocks[0].mode is POWERS
    assert POWERS.code == 18


def test_equals_the_reference() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    session = federation.play(build("fedavg", "natural"), 5)

    def compress(vector: np.ndarray, t: int, i: int) -> np.ndarray:
        rng = stream(federation.seed, "compression up update", t, i)
        drawn = np.concatenate([rng.integers(0, 2**23, size, dtype=np.uint32) for size in (6, 4, 2)])
        return natural(vector, drawn)

    for model, wanted in zip(
        session.models[1:], compressed_fedavg(plain_problem(federation, 5, 3), compress), strict=True
    ):
        assert_close(model, *wanted)
