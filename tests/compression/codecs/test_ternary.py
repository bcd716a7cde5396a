"""Sparse ternary compression: by hand, zeros, its bytes, lies, and a reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.compression.codecs.ternary import Ternary
from fedreuse.compression.codecs.top_k import kept_count
from fedreuse.compression.wire.modes.ternary import TERNARY
from fedreuse.core.errors import ConfigError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal
from fedreuse.testing.quadratic import QuadraticFederation
from tests.crossing import assert_only_wire_errors, assert_refused, damages, decoded, encode, tensor, with_fields
from tests.federation import NOISY, assert_close, build, plain_problem
from tests.references.compressed import compressed_fedavg
from tests.references.ternary import ternary

floats = st.floats(-(2.0**100), 2.0**100, width=32)


def test_by_hand() -> None:
    # the top half of 6: 4, -2, 3; mu = (4 + 2 + 3) / 3 = 3
    assert decoded(Ternary(0.5), [4, 0.5, -2, 1, 3, -1]).tolist() == [3, 0, -3, 0, 3, 0]


def test_zeros_are_never_kept() -> None:
    # two of ten are not zero, and half is asked for: the threshold is 0
    values = np.array([0, 3, 0, 0, -1, 0, 0, 0, 0, 0], np.float32)
    assert decoded(Ternary(0.5), values).tolist() == [0, 2, 0, 0, -2, 0, 0, 0, 0, 0]
    # the wrong version keeps T >= v with v = 0: every zero becomes +mu
    v = np.sort(np.abs(values))[-5]
    mu = np.sort(np.abs(values))[-5:].mean()
    wrong = np.where(values >= v, mu, np.where(values <= -v, -mu, 0))
    assert v == 0
    assert np.count_nonzero(wrong) == 10


def test_a_tensor_of_zeros_costs_nothing() -> None:
    tensors = tensor(np.zeros(100))
    parcel = encode(Ternary(0.2), tensors)
    assert parcel.field_bytes == 0
    assert not decoded(Ternary(0.2), np.zeros(100)).any()


def test_ties_keep_no_more_than_asked_for() -> None:
    found = decoded(Ternary(0.5), [1, -1, 1, -1, 1, -1])
    assert found.tolist() == [1, -1, 1, 0, 0, 0]


def test_ratio_one_is_the_scaled_sign() -> None:
    values = np.random.default_rng(0).normal(size=50).astype(np.float32)
    found = decoded(Ternary(1.0), values)
    np.testing.assert_allclose(found, np.sign(values) * np.abs(values).mean(), rtol=1e-6)


def test_one_magnitude_per_tensor() -> None:
    values = np.random.default_rng(1).normal(size=5000).astype(np.float32)
    found = decoded(Ternary(0.05), values)
    kept = np.flatnonzero(found)
    assert len(kept) == 250
    assert len(set(np.abs(found[kept]).tolist())) == 1
    assert (np.sign(found[kept]) == np.sign(values[kept])).all()
    np.testing.assert_allclose(np.abs(found[kept[0]]), np.abs(values[kept]).mean(), rtol=1e-6)


@pytest.mark.parametrize(("ratio", "saving"), [(0.2, 0.9707), (0.05, 0.9894), (0.01, 0.9972), (1 / 400, 0.9991)])
def test_saving_of_a_large_tensor(ratio: float, saving: float) -> None:
    # p (bits per position + 1) bits per coordinate
    values = np.random.default_rng(2).normal(size=401408).astype(np.float32)
    used = encode(Ternary(ratio), tensor(values)).field_bytes / (4 * len(values))
    assert 1 - used == pytest.approx(saving, abs=1e-4)


def test_the_relative_error_without_feedback() -> None:
    # 0.3 to 0.5 even at 0.2
    values = np.random.default_rng(3).normal(size=100_000).astype(np.float32)
    error = np.sum((decoded(Ternary(0.2), values) - values) ** 2) / np.sum(values**2)
    assert 0.3 < error < 0.5


def test_whole_numbers_travel_dense() -> None:
    schema = Schema((TensorSpec("count", (3,), "int64"),))
    tensors = Tensors(schema, np.array([1, 2, 2**60 + 1]))
    assert is_equal(encode(Ternary(), tensors).decode(schema), tensors)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_arrives_as_such(bad: float) -> None:
    assert not np.isfinite(decoded(Ternary(0.2), [1, 2, bad, 3, 4, 5, 0, 0, 0, 0])).all()


@pytest.mark.slow
@given(arrays(np.float32, st.integers(1, 300), elements=floats), st.floats(0.001, 1))
@settings(max_examples=150, deadline=None)
def test_any_tensor_keeps_what_it_must(values: np.ndarray, ratio: float) -> None:
    found = decoded(Ternary(ratio), values)
    kept = np.flatnonzero(found)
    assert len(kept) <= kept_count(len(values), ratio)
    left = np.setdiff1d(np.arange(len(values)), kept)
    if len(kept) and len(left):
        assert np.abs(values[left]).max() <= np.abs(values[kept]).min()


@pytest.mark.slow
@given(arrays(np.float32, st.integers(1, 60), elements=floats), damages())
@settings(max_examples=150, deadline=None)
def test_damage_ends_in_a_wire_error_or_in_tensors(values: np.ndarray, damage: list[tuple[float, int]]) -> None:
    tensors = tensor(values)
    assert_only_wire_errors(encode(Ternary(0.3), tensors), tensors.schema, damage)


def test_lies_are_refused() -> None:
    tensors = tensor(np.arange(-10, 10))
    parcel, schema = encode(Ternary(0.2), tensors), tensors.schema
    magnitude, length, unary, low, signs = fields = parcel.blocks[0].fields
    assert [field.tolist() for field in fields] == [[9], [1], unary.tolist(), low.tolist(), [0b0111]]
    assert_refused(with_fields(parcel, count=5), schema, "the message says 5")
    assert_refused(with_fields(parcel, count=3), schema, "the message says 3")
    assert_refused(with_fields(parcel, count=0), schema, "left over")
    assert_refused(with_fields(parcel, count=21), schema, "kept coordinates")
    assert_refused(with_fields(parcel, -magnitude, length, unary, low, signs), schema, "not be negative")
    longer = np.append(unary, np.uint8(0))
    assert_refused(with_fields(parcel, magnitude, length + 1, longer, low, signs), schema, "codes in 2 bytes")
    assert_refused(with_fields(parcel, magnitude, length + 10**6, unary, low, signs), schema, "unary part of")
    assert_refused(with_fields(parcel, magnitude, length * 0, low, signs), schema, "0 codes in 0 bytes")
    far = np.array([0b1111 << 4], np.uint8)  # four zeros first: the first gap is 4 << 2 or more
    assert_refused(with_fields(parcel, magnitude, length, far, low | 0xFF, signs), schema, "within 0..19")
    assert_refused(with_fields(parcel, magnitude, length, unary, low, signs | 0x80), schema, "beyond the last")
    assert_refused(with_fields(parcel, magnitude, length, unary, low), schema, "early")
    assert_refused(parcel, Schema((TensorSpec("n", (20,), "int64"),)), "int64 cannot be written as ternary")
    assert parcel.blocks[0].mode is TERNARY
    assert TERNARY.code == 17


@pytest.mark.parametrize("ratio", [0, -0.1, 1.1])
def test_settings_that_cannot_be(ratio: float) -> None:
    with pytest.raises(ConfigError, match=r"ternary\.ratio must be in \(0, 1\]"):
        Ternary(ratio)


@pytest.mark.parametrize("ratio", [0.3, 0.6, 1.0])
def test_equals_the_reference(ratio: float) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    session = federation.play(build("fedavg", {"name": "ternary", "ratio": ratio}), 5)
    wanted = compressed_fedavg(plain_problem(federation, 5, 3), lambda vector, t, i: ternary(vector, ratio))
    for model, one in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *one)


def test_given_positions_by_hand() -> None:
    # -2, 1 and -6: mu = 3; the zero at position 1 is left out
    tensors = tensor([4, 0, -2, 1, 3, -6])
    parcel = Ternary(0.5).encode_kept(tensors, tensors.schema, np.array([1, 2, 3, 5]))
    found = parcel.decode(tensors.schema)
    assert found.index is not None
    assert (found.index.tolist(), found.values.tolist()) == ([2, 3, 5], [-3, 3, -3])
