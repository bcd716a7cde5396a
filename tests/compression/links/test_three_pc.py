"""Three point compressors: by hand; the inequality that defines them, for all of them; what each reduces to."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.compression.codecs.codec import Codec
from fedreuse.compression.codecs.dense import Dense
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.clag import Clag, Lazy
from fedreuse.compression.links.ef21 import Ef21
from fedreuse.compression.links.link import parse_link
from fedreuse.compression.links.three_pc import ThreePc, TwoPoints
from fedreuse.compression.wire.block import sparse_block
from fedreuse.compression.wire.parcel import Parcel, pack_tensors
from fedreuse.core.errors import ConfigError, WireError
from fedreuse.core.schema import Schema
from fedreuse.core.tensors import Tensors, to_dense
from tests.compression.links.vectors import PAIR, Nothing, context, line, pair, talk

TOP = TopK(0.25)
ALPHA = 1 / 6
"""Top-K 0.25 keeps 1 of 6 and 1 of 4: it contracts by 1/6 at least."""


@dataclass(frozen=True)
class Chosen(Codec):
    """One coordinate of each tensor, four times as large: over the four choices unbiased, with variance factor 3."""

    position: int

    @property
    def drops_coordinates(self) -> bool:
        return True

    def encode(self, tensors: Tensors, schema: Schema, rng: np.random.Generator) -> Parcel:
        at = np.array([self.position], np.int32)
        return pack_tensors(to_dense(tensors), schema, lambda flat: sparse_block(at, 4 * flat[at], 4))


class Coin:
    """A stream whose coins all fall alike."""

    def __init__(self, value: float) -> None:
        self._value = value

    def random(self) -> float:
        return self._value


def squared(values: np.ndarray) -> float:
    return float(np.sum(np.asarray(values, np.float64) ** 2))


# by hand


def test_two_sends_of_each_by_hand() -> None:
    # one coordinate of two is kept by C and by Q. First (4, 3) with h = y = 0, then (4, 5) with y = (4, 3)
    half = TopK(0.5)
    updates = [line(4, 3), line(4, 5)]
    # v2: b = (4, 0), C(0, 3): h = (4, 3); then b = h + Q(0, 2) = (4, 5), nothing is left
    assert talk(ThreePc("v2", half, half), updates) == [(True, [4, 3]), (True, [4, 5])]
    # v4: b = (4, 0), C(0, 3): h = (4, 3); b = h + Q(0, 2) = (4, 5)
    assert talk(ThreePc("v4", half, half), updates) == [(True, [4, 3]), (True, [4, 5])]
    # v3, zeta 1: the same first; then |x - h|^2 = 4 is not above |x - y|^2 = 4: b = h, C(0, 2)
    assert talk(ThreePc("v3", half, half, 1.0), updates) == [(True, [4, 3]), (True, [4, 5])]
    # v5 without luck: h = C(4, 3) = (4, 0); then h + C(0, 2) = (4, 2)
    assert talk(ThreePc("v5", half, probability=1e-9), updates) == [(True, [4, 0]), (True, [4, 2])]
    # v5 with luck: x
    assert talk(ThreePc("v5", half, probability=1.0), updates) == [(True, [4, 3]), (True, [4, 5])]


def test_the_base_travels_inside() -> None:
    update = pair(np.random.default_rng(0).normal(size=10))
    for variant, has_base in (("v2", True), ("v3", True), ("v4", True), ("v5", False)):
        link = ThreePc(variant, TOP, TopK(0.5))  # type: ignore[arg-type]
        parcel, _ = link.send(update, None, context(PAIR))
        assert bool(parcel.more) == has_base
        one = TOP.encode(update, PAIR, np.random.default_rng(0)).field_bytes
        two = TopK(0.5).encode(update, PAIR, np.random.default_rng(0)).field_bytes
        assert parcel.field_bytes == one + (two if has_base else 0)


def test_a_lazy_base_is_left_out() -> None:
    link = ThreePc("v3", TOP, TopK(0.5), zeta=1e9)
    _, state = link.send(pair(range(10)), None, context(PAIR))
    parcel, _ = link.send(pair(range(1, 11)), state, context(PAIR))
    assert not parcel.more


# the inequality:  E |C(x) - x|^2 <= (1 - A) |h - y|^2 + B |x - y|^2

NUMBERS = arrays(np.float64, 10, elements=st.floats(-100, 100))


def assert_three_point(error: float, x: np.ndarray, h: np.ndarray, y: np.ndarray, a: float, b: float) -> None:
    bound = (1 - a) * squared(h - y) + b * squared(x - y)
    assert error <= bound * (1 + 1e-9) + 1e-9


def ef21_constants(alpha: float) -> tuple[float, float]:
    root = sqrt(1 - alpha)
    return 1 - root, (1 - alpha) / (1 - root)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(NUMBERS, NUMBERS, NUMBERS)
def test_ef21_is_one(x: np.ndarray, h: np.ndarray, y: np.ndarray) -> None:
    _, g = Ef21(TOP).send(pair(x), pair(h), context(PAIR))
    assert_three_point(squared(g.values - x), x, h, y, *ef21_constants(ALPHA))


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(NUMBERS, NUMBERS, NUMBERS, st.floats(0, 10))
def test_lag_and_clag_are(x: np.ndarray, h: np.ndarray, y: np.ndarray, zeta: float) -> None:
    state = Lazy(pair(h), pair(y), 0)
    _, lag = Clag(zeta, Dense(), None).send(pair(x), state, context(PAIR))
    assert_three_point(squared(lag.estimate.values - x), x, h, y, 1.0, zeta)
    _, clag = Clag(zeta, TOP, None).send(pair(x), state, context(PAIR))
    a, b = ef21_constants(ALPHA)
    assert_three_point(squared(clag.estimate.values - x), x, h, y, a, max(b, zeta))


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(*[arrays(np.float64, 4, elements=st.floats(-100, 100))] * 3)
def test_v2_is_one(x: np.ndarray, h: np.ndarray, y: np.ndarray) -> None:
    # Q over its four equally likely choices has omega = 3; C keeps 1 of 4: A = 1/4, B = (1 - 1/4) * 3
    state = TwoPoints(line(*h), line(*y))
    sent = [ThreePc("v2", TOP, Chosen(j)).send(line(*x), state, context(line(*x).schema))[1] for j in range(4)]
    error = np.mean([squared(after.estimate.values - x) for after in sent])
    assert_three_point(error, x, h, y, 1 / 4, 3 / 4 * 3)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(NUMBERS, NUMBERS, NUMBERS, st.floats(0, 10))
def test_v3_is_one(x: np.ndarray, h: np.ndarray, y: np.ndarray, zeta: float) -> None:
    # CLAG inside: A = 1 - (1 - alpha)(1 - A_1), B = (1 - alpha) B_1
    inner_a, inner_b = ef21_constants(ALPHA)
    inner_b = max(inner_b, zeta)
    _, after = ThreePc("v3", TOP, TOP, zeta).send(pair(x), TwoPoints(pair(h), pair(y)), context(PAIR))
    error = squared(after.estimate.values - x)
    assert_three_point(error, x, h, y, 1 - (1 - ALPHA) * (1 - inner_a), (1 - ALPHA) * inner_b)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(NUMBERS, NUMBERS, NUMBERS)
def test_v4_is_one(x: np.ndarray, h: np.ndarray, y: np.ndarray) -> None:
    # EF21 with the two contractions in a row: 1 - (1 - alpha_1)(1 - alpha_2); Top-K 0.5 keeps 3 of 6 and 2 of 4
    both = 1 - (1 - ALPHA) * (1 - 1 / 2)
    _, after = ThreePc("v4", TOP, TopK(0.5)).send(pair(x), TwoPoints(pair(h), pair(y)), context(PAIR))
    assert_three_point(squared(after.estimate.values - x), x, h, y, *ef21_constants(both))


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(NUMBERS, NUMBERS, NUMBERS, st.floats(0.01, 0.99))
def test_v5_is_one(x: np.ndarray, h: np.ndarray, y: np.ndarray, p: float) -> None:
    # A = 1 - sqrt(1 - p), B = (1 - p)(1 - alpha) / (1 - sqrt(1 - p)); the mean over both sides of the coin
    state, errors = TwoPoints(pair(h), pair(y)), []
    for fell in (0.0, 1.0):
        here = type(context(PAIR))(PAIR, 1, 0, Coin(fell))  # type: ignore[arg-type]
        _, after = ThreePc("v5", TOP, probability=p).send(pair(x), state, here)
        errors.append(squared(after.estimate.values - x))
    assert errors[0] <= 1e-20 * (1 + squared(x) + squared(h))
    root = sqrt(1 - p)
    error = p * errors[0] + (1 - p) * errors[1]
    assert_three_point(error, x, h, y, 1 - root, (1 - p) * (1 - ALPHA) / (1 - root))


def test_the_inequality_can_fail() -> None:
    # Top-K of x - y added to h, v5 without its coin, is not a three point compressor: the error of h stays for ever
    x, h, y = np.zeros(10), np.ones(10), np.zeros(10)
    _, after = ThreePc("v5", TOP, probability=1e-9).send(pair(x), TwoPoints(pair(h), pair(y)), context(PAIR))
    assert squared(after.estimate.values - x) == squared(h - y)  # A would have to be 0


# what they reduce to


def random_updates(count: int = 25) -> list[Tensors]:
    rng = np.random.default_rng(8)
    return [pair(rng.normal(size=10)) for _ in range(count)]


@pytest.mark.parametrize("variant", ["v2", "v3", "v4"])
def test_without_a_base_they_are_ef21(variant: str) -> None:
    updates = random_updates()
    assert talk(ThreePc(variant, TOP, Nothing()), updates) == talk(Ef21(TOP), updates)  # type: ignore[arg-type]


def test_v3_with_an_eager_base_is_v4() -> None:
    updates = random_updates()
    assert talk(ThreePc("v3", TOP, TopK(0.5), 0.0), updates) == talk(ThreePc("v4", TOP, TopK(0.5)), updates)


def test_v5_with_certainty_delivers_the_update() -> None:
    updates = random_updates()
    for update, (_, arrived) in zip(updates, talk(ThreePc("v5", TOP, probability=1.0), updates), strict=True):
        np.testing.assert_allclose(arrived, update.values, rtol=1e-12, atol=1e-14)


def test_the_share_of_full_uploads_of_v5() -> None:
    link, state, full = ThreePc("v5", TOP, probability=0.3), None, 0
    for number, update in enumerate(random_updates(400)):
        parcel, state = link.send(update, state, context(PAIR, number))
        full += parcel.field_bytes == PAIR.dense_bytes
    assert 0.23 < full / 400 < 0.37


# what is refused


def test_v1_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"uplink\.update: three_pc\.variant: v1 .* dense upload .*choose v2"):
        parse_link({"name": "three_pc", "variant": "v1"}, "uplink.update")


@pytest.mark.parametrize("field", [{"zeta": -1.0}, {"probability": 0.0}, {"probability": 1.5}])
def test_what_is_refused(field: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=rf"three_pc\.{next(iter(field))} must"):
        ThreePc(**field)  # type: ignore[arg-type]


def test_silence_is_refused() -> None:
    with pytest.raises(WireError, match="always sends a parcel"):
        ThreePc().receive(None, pair(range(10)), context(PAIR))
