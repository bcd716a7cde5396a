"""QSGD: levels by hand, right on average, its bytes, empty buckets and top levels, lies, and a reference."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.codecs.qsgd import Qsgd
from fedreuse.compression.links.ef21 import Ef21
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.wire.modes.levels import LEVELS
from fedreuse.compression.wire.packing import unpack_bits
from fedreuse.core.errors import ConfigError
from fedreuse.core.randomness import stream
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal
from fedreuse.testing.quadratic import QuadraticFederation
from tests.crossing import Draws, assert_only_wire_errors, assert_refused, damages, decoded, encode, tensor, with_fields
from tests.federation import NOISY, assert_close, build, plain_problem
from tests.references.compressed import compressed_fedavg
from tests.references.qsgd import qsgd

floats = st.floats(-(2.0**100), 2.0**100, width=32)


def test_levels_by_hand() -> None:
    # 3 bits: top = 3. Scale 3, u = .4: 3 stays; -1.5 goes up with 1/2 and .4 < .5: -1; 0 stays; .75 goes up with .75: 1
    tensors = tensor([3, -1.5, 0, 0.75])
    parcel = Qsgd(bits=3).encode(tensors, tensors.schema, Draws(0.4))
    scales, codes = parcel.blocks[0].fields
    assert scales.tolist() == [3]
    assert unpack_bits(codes, 3, 4).tolist() == [6, 2, 3, 4]  # level + top
    assert parcel.decode(tensors.schema).values.tolist() == [3, -1, 0, 1]
    assert parcel.notes == {"bits": 3, "bucket": 512}


def test_each_bucket_has_its_own_scale() -> None:
    # 2 bits: top = 1. Buckets (4, 2), (0.5, -0.5), (8): 2 / 4 goes up with probability .5, and .4 < .5
    tensors = tensor([4, 2, 0.5, -0.5, 8])
    parcel = Qsgd(bits=2, bucket=2).encode(tensors, tensors.schema, Draws(0.4))
    assert parcel.blocks[0].fields[0].tolist() == [4, 0.5, 8]
    assert parcel.decode(tensors.schema).values.tolist() == [4, 4, 0.5, -0.5, 8]


@pytest.mark.parametrize("bits", range(2, 9))
def test_right_on_average(bits: int) -> None:
    values = np.random.default_rng(1).normal(size=40).astype(np.float32)
    tensors = tensor(np.tile(values, 2000))
    rows = encode(Qsgd(bits, 40), tensors).decode(tensors.schema).values.reshape(2000, 40).astype(np.float64)
    error = rows.std(0) / np.sqrt(2000)
    assert (np.abs(rows.mean(0) - values) <= 4 * error + 1e-7).all()


@pytest.mark.parametrize(("bits", "wanted"), [(2, 1.60), (3, 0.20), (4, 0.036), (5, 0.008)])
def test_relative_error_on_gaussian_entries(bits: int, wanted: float) -> None:
    # d = 401,408, max-norm, bucket 512
    values = np.random.default_rng(2).normal(size=401408).astype(np.float32)
    error = np.sum((decoded(Qsgd(bits), values) - values) ** 2) / np.sum(values**2)
    assert error == pytest.approx(wanted, rel=0.06)


def test_an_empty_bucket_gives_zeros_and_not_zero_by_zero() -> None:
    values = np.array([0, 0, 0, 0, 1, -2, 0.5, 0], np.float32)
    assert decoded(Qsgd(4, 4), values)[:4].tolist() == [0, 0, 0, 0]
    assert not decoded(Qsgd(4, 4), np.zeros(9)).any()
    # the wrong version divides by the norm of the bucket
    with np.errstate(invalid="ignore"):
        wrong = values[:4] / np.abs(values[:4]).max()
    assert np.isnan(wrong).all()


def test_the_top_level_is_reachable_and_has_a_code() -> None:
    # the wrong version has 2^(bits - 1) levels a side, may round up to the last of them, and has no code left for it:
    # level 8 of -8 .. 8 is code 16, which in 4 bits reads 0, the other end
    bits, top = 4, 8
    wrong = (int(np.floor(1.0 * top + 0.5)) + top) % 2**bits
    assert wrong - top == -8
    for draw in (0.0, 0.5, np.nextafter(1, 0)):
        tensors = tensor([5.0, -5.0])
        parcel = Qsgd(bits).encode(tensors, tensors.schema, Draws(draw))
        assert unpack_bits(parcel.blocks[0].fields[1], bits, 2).tolist() == [14, 0]
        assert parcel.decode(tensors.schema).values.tolist() == [5, -5]
    # nor is floor(x + u) the same: in floating point 7 + u can be 8, and -7 + u can be -6
    assert np.floor([7 + np.nextafter(1, 0), -7 + np.nextafter(1, 0)]).tolist() == [8, -6]


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("size", [1, 7, 512, 513, 1500])
def test_bytes_are_the_formula_without_padding(bits: int, size: int) -> None:
    # ceil(d b / 8) + 4 per bucket: the last bucket of 513 holds one coordinate and costs one
    parcel = encode(Qsgd(bits), tensor(np.ones(size)))
    assert parcel.field_bytes == ceil(size * bits / 8) + 4 * ceil(size / 512)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_buckets_of_one_are_lossless(dtype: str) -> None:
    values = np.random.default_rng(3).normal(size=100).astype(dtype)
    assert decoded(Qsgd(2, 1), values, dtype=dtype).tobytes() == values.tobytes()


def test_whole_numbers_travel_dense() -> None:
    schema = Schema((TensorSpec("count", (3,), "int64"),))
    tensors = Tensors(schema, np.array([1, 2, 2**60 + 1]))
    assert is_equal(encode(Qsgd(), tensors).decode(schema), tensors)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_arrives_as_such(bad: float) -> None:
    found = decoded(Qsgd(4, 2), [1, 2, bad, 3, 4, 5])
    assert not np.isfinite(found[2])
    assert np.isfinite(found[[0, 1, 4, 5]]).all()


@pytest.mark.slow
@given(arrays(np.float32, st.integers(1, 70), elements=floats), st.integers(2, 8), st.integers(1, 80))
@settings(max_examples=150, deadline=None)
def test_any_tensor_comes_back_within_a_level(values: np.ndarray, bits: int, bucket: int) -> None:
    found = decoded(Qsgd(bits, bucket), values).astype(np.float64)
    scales = np.array([np.abs(values[at : at + bucket]).max() for at in range(0, len(values), bucket)], np.float64)
    limit = np.repeat(scales, bucket)[: len(values)]
    assert (np.abs(found) <= limit).all()
    assert (np.abs(found - values) <= limit / (2 ** (bits - 1) - 1) * (1 + 1e-6)).all()


@pytest.mark.slow
@given(arrays(np.float32, st.integers(1, 40), elements=floats), damages())
@settings(max_examples=150, deadline=None)
def test_damage_ends_in_a_wire_error_or_in_tensors(values: np.ndarray, damage: list[tuple[float, int]]) -> None:
    tensors = tensor(values)
    assert_only_wire_errors(encode(Qsgd(3, 8), tensors), tensors.schema, damage)


def test_lies_are_refused() -> None:
    tensors = tensor(np.linspace(-1, 1, 10))
    parcel, schema = encode(Qsgd(3, 4), tensors), tensors.schema
    scales, codes = parcel.blocks[0].fields
    assert_refused(with_fields(parcel, bits=9), schema, "note bits")
    assert_refused(with_fields(parcel, bits="3"), schema, "note bits")
    assert_refused(with_fields(parcel, bucket=0), schema, "note bucket")
    assert_refused(with_fields(parcel, bucket=2**31), schema, "note bucket")
    assert_refused(with_fields(parcel, bits=4), schema, "early")
    assert_refused(with_fields(parcel, bucket=5), schema, "left over|beyond|above|negative")
    assert_refused(with_fields(parcel, -scales, codes), schema, "not be negative")
    assert_refused(with_fields(parcel, scales, codes | 0xFF), schema, "beyond the last|above 6")
    assert_refused(with_fields(parcel, scales, np.array([7, 0, 0, 0], np.uint8)), schema, "above 6")
    assert_refused(with_fields(parcel, scales, codes[:-1]), schema, "early")
    assert_refused(with_fields(parcel, scales, np.append(codes, np.uint8(0))), schema, "left over")
    whole = ModelSchema(Schema((TensorSpec("n", (10,), "int64"),))).weights
    assert_refused(parcel, whole, "int64 cannot be written as levels")
    assert parcel.blocks[0].mode is LEVELS
    assert LEVELS.code == 16


@pytest.mark.parametrize("fields", [{"bits": 1}, {"bits": 9}, {"bucket": 0}, {"bucket": 2**31}])
def test_settings_that_cannot_be(fields: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=r"qsgd\.b"):
        Qsgd(**fields)
    Qsgd(bits=2, bucket=2**31 - 1)


@pytest.mark.parametrize("bits", [2, 3, 8])
def test_an_error_that_is_fed_back_stays_within_its_scale(bits: int) -> None:
    # |v - Q(v)| <= max |v| in each bucket: a residual of 2 bits is large, but its largest coordinate does not grow
    left = np.random.default_rng(4).standard_t(3, 5120).astype(np.float32)
    largest = np.abs(left).reshape(-1, 512).max(1)
    for seed in range(30):
        left = left - decoded(Qsgd(bits), left, seed)
        assert (np.abs(left).reshape(-1, 512).max(1) <= largest * (1 + 1e-6)).all()


def test_two_bits_are_no_contraction_and_say_so() -> None:
    # one coordinate of 1 and n of 1/4: each of these errs by 1/4 * 3/4 on average, n * 3/16 in all, of 1 + n/16
    for n, is_larger in ((7, False), (9, True), (511, True)):
        assert (n * 3 / 16 > 1 + n / 16) is is_larger
        assert Qsgd(2, n + 1).expands is is_larger
    values = np.tile(np.float32([1, *[0.25] * 511]), 40)
    assert np.sum((decoded(Qsgd(2), values) - values) ** 2) > 2 * np.sum(values**2)
    with pytest.raises(ConfigError, match=r"error_feedback\.codec must be contractive .*more bits"):
        ErrorFeedback(Qsgd(2))
    assert ErrorFeedback(Qsgd(3)).codec == Qsgd(3)
    assert ErrorFeedback(Qsgd(2, 8)).codec == Qsgd(2, 8)
    with pytest.raises(ConfigError, match=r"ef21\.codec must be contractive"):
        Ef21(Packed(Qsgd(2)))  # nor behind another codec


@pytest.mark.parametrize(("bits", "bucket"), [(2, 512), (3, 4), (8, 3)])
def test_equals_the_reference(bits: int, bucket: int) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    session = federation.play(build("fedavg", {"name": "qsgd", "bits": bits, "bucket": bucket}), 5)

    def compress(vector: np.ndarray, t: int, i: int) -> np.ndarray:
        uniforms = stream(federation.seed, "compression up update", t, i).random(len(vector))
        return qsgd(vector, uniforms, bits, bucket)

    for model, wanted in zip(
        session.models[1:], compressed_fedavg(plain_problem(federation, 5, 3), compress), strict=True
    ):
        assert_close(model, *wanted)
