"""Rand-K: positions from a seed, right on average, its bytes, lies, and a reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.compression.codecs.rand_k import RandK
from fedreuse.compression.codecs.top_k import kept_count
from fedreuse.compression.links.error_feedback import ErrorFeedback
from fedreuse.compression.wire.modes.seeded import SEEDED, drawn_positions
from fedreuse.core.errors import ConfigError
from fedreuse.core.randomness import stream
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal
from fedreuse.testing.quadratic import QuadraticFederation
from tests.crossing import assert_only_wire_errors, assert_refused, damages, decoded, encode, tensor, with_fields
from tests.federation import NOISY, assert_close, build, plain_problem
from tests.references.compressed import compressed_fedavg
from tests.references.rand_k import rand_k

floats = st.floats(-(2.0**100), 2.0**100, width=32)


def test_positions_follow_from_the_seed_alone() -> None:
    # pinned: another NumPy must draw the same, or the two ends of a link would disagree
    assert drawn_positions(np.uint64(7), 20, 5).tolist() == PINNED
    assert drawn_positions(np.uint64(7), 20, 20).tolist() == list(range(20))
    assert drawn_positions(np.uint64(7), 20, 0).tolist() == []


PINNED = [3, 4, 6, 11, 12]


@pytest.mark.slow
def test_every_position_is_as_likely_as_any_other() -> None:
    counts = np.zeros(12)
    for seed in range(6000):
        counts[drawn_positions(np.uint64(seed), 12, 3)] += 1
    # 1500 expected each, standard deviation sqrt(6000 * 3/16)
    assert np.abs(counts - 1500).max() < 4.5 * np.sqrt(6000 * 3 / 16)


def test_by_hand() -> None:
    # 3 of 10 kept, scaled by 10 / 3
    values = np.arange(1, 101, dtype=np.float32)
    tensors = tensor(values)
    parcel = encode(RandK(0.3), tensors)
    positions = drawn_positions(parcel.blocks[0].fields[0][0], 100, 30)
    wanted = np.zeros(100, np.float32)
    wanted[positions] = values[positions] * np.float32(100 / 30)
    assert decoded(RandK(0.3), values).tolist() == wanted.tolist()
    assert decoded(RandK(0.3, unbiased=False), values)[positions].tolist() == values[positions].tolist()


@pytest.mark.slow
def test_right_on_average_or_shrunk() -> None:
    values = np.random.default_rng(1).normal(size=30).astype(np.float32)
    for unbiased, factor in ((True, 1.0), (False, 0.3)):
        rows = np.array([decoded(RandK(0.3, unbiased), values, seed) for seed in range(2000)], np.float64)
        assert (np.abs(rows.mean(0) - factor * values) <= 4.5 * rows.std(0) / np.sqrt(2000)).all()


def test_the_variance_is_that_of_the_formula() -> None:
    # E|Q(v) - v|^2 = (d / k - 1) |v|^2
    values = np.random.default_rng(2).normal(size=100_000).astype(np.float32)
    error = np.sum((decoded(RandK(0.2), values) - values) ** 2) / np.sum(values**2)
    assert error == pytest.approx(4, rel=0.02)


@pytest.mark.parametrize(
    ("size", "mode", "used"), [(1000, "seeded", 808), (64, "seeded", 56), (30, "bitmap", 28), (5, "bitmap", 5)]
)
def test_the_seed_stands_for_the_positions_where_that_is_shorter(size: int, mode: str, used: int) -> None:
    # ratio 0.2: 8 + 4 k against 4 k + ceil(d / 8) and 8 k
    parcel = encode(RandK(0.2), tensor(np.ones(size)))
    assert (parcel.blocks[0].mode.name, parcel.field_bytes) == (mode, used)


def test_ratio_one_is_dense() -> None:
    values = np.random.default_rng(3).normal(size=30).astype(np.float32)
    assert decoded(RandK(1.0), values).tobytes() == values.tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_arrives_as_such(bad: float) -> None:
    values = np.ones(1000)
    values[17] = bad
    for seed in range(5):
        assert np.flatnonzero(~np.isfinite(decoded(RandK(0.01), values, seed))).tolist() == [17]


def test_what_becomes_infinite_arrives_as_such() -> None:
    # ten times the largest number, which is kept with nine others of a hundred
    sent = np.full(100, np.finfo(np.float32).max)
    assert np.count_nonzero(np.isinf(decoded(RandK(0.1), sent))) == 10


def test_whole_numbers_travel_dense() -> None:
    schema = Schema((TensorSpec("count", (3,), "int64"),))
    tensors = Tensors(schema, np.array([1, 2, 2**60 + 1]))
    assert is_equal(encode(RandK(), tensors).decode(schema), tensors)


@pytest.mark.slow
@given(arrays(np.float32, st.integers(1, 300), elements=floats), st.floats(0.001, 1), st.integers(0, 99))
@settings(max_examples=150, deadline=None)
def test_any_tensor_keeps_so_many(values: np.ndarray, ratio: float, seed: int) -> None:
    found = decoded(RandK(ratio, unbiased=False), values, seed)
    assert np.count_nonzero(found) <= kept_count(len(values), ratio)
    assert ((found == values) | (found == 0)).all()


@pytest.mark.slow
@given(arrays(np.float32, st.integers(70, 120), elements=floats), damages())
@settings(max_examples=100, deadline=None)
def test_damage_ends_in_a_wire_error_or_in_tensors(values: np.ndarray, damage: list[tuple[float, int]]) -> None:
    tensors = tensor(values)
    assert_only_wire_errors(encode(RandK(0.3), tensors), tensors.schema, damage)


def test_lies_are_refused() -> None:
    tensors = tensor(np.arange(100))
    parcel, schema = encode(RandK(0.2), tensors), tensors.schema
    seed, values = parcel.blocks[0].fields
    assert_refused(with_fields(parcel, count=21), schema, "early")
    assert_refused(with_fields(parcel, count=19), schema, "left over")
    assert_refused(with_fields(parcel, count=101), schema, "kept coordinates")
    assert_refused(with_fields(parcel, count=-1), schema, "kept coordinates")
    assert_refused(with_fields(parcel, seed, values[:-1]), schema, "early")
    assert_refused(with_fields(parcel, seed[:0], values), schema, "early")
    assert parcel.blocks[0].mode is SEEDED
    assert SEEDED.code == 19


@pytest.mark.parametrize("ratio", [0, -0.1, 1.1])
def test_settings_that_cannot_be(ratio: float) -> None:
    with pytest.raises(ConfigError, match=r"rand_k\.ratio must be in \(0, 1\]"):
        RandK(ratio)


def test_scaled_values_and_feedback_are_refused_because_errors_would_grow() -> None:
    # E|e'|^2 = (d / k - 1) |e|^2 = 4 |e|^2 at 0.2: a thousand times as long after ten rounds; unscaled it is 0.8 |e|^2
    for unbiased, grows in ((True, True), (False, False)):
        left = np.random.default_rng(4).normal(size=2000).astype(np.float32)
        start = np.linalg.norm(left)
        for seed in range(10):
            left = left - decoded(RandK(0.2, unbiased), left, seed)
        assert bool(np.linalg.norm(left) > 100 * start) is grows
    with pytest.raises(ConfigError, match=r"error_feedback\.codec must be contractive"):
        ErrorFeedback(RandK(0.2))
    assert ErrorFeedback(RandK(0.2, unbiased=False)).codec == RandK(0.2, unbiased=False)
    assert ErrorFeedback(RandK(1.0)).codec == RandK(1.0)


@pytest.mark.parametrize(("unbiased", "feedback"), [(True, False), (False, False), (False, True)])
def test_equals_the_reference(unbiased: bool, feedback: bool) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    codec = {"name": "rand_k", "ratio": 0.5, "unbiased": unbiased}
    session = federation.play(build("fedavg", {"name": "error_feedback", "codec": codec} if feedback else codec), 5)

    def compress(vector: np.ndarray, t: int, i: int) -> np.ndarray:
        rng = stream(federation.seed, "compression up update", t, i)
        return rand_k(vector, [int(rng.integers(0, 2**64, dtype=np.uint64)) for _ in range(3)], 0.5, unbiased)

    wanted = compressed_fedavg(plain_problem(federation, 5, 3), compress, feedback)
    for model, one in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *one)
