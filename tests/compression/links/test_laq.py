"""LAQ's link: quantised innovations and silence by hand; zero and not a number; the error bound; bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedreuse.compression.links.laq import Laq, Quantised
from fedreuse.core.errors import ConfigError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, is_equal
from tests.compression.links.vectors import PAIR, context, line, pair, talk

THREE = [line(3, 0), line(3, 0.5), line(9, 1)]


def test_three_sends_by_hand() -> None:
    # 2 bits: 4 levels, steps of 2R/3.
    # (3, 0): R = 3, steps of 2: levels -3 -1 1 3, 0 lies between and goes up: (3, 1), error 1. Sent, being the first.
    # (3, 0.5): lacks (0, -0.5), R = 0.5, steps of 1/3: (1/6, -1/2), square 10/36; error (1/6)^2 = 1/36;
    #           10/36 <= 3 (1/36 + 1): silence.
    # (9, 1): lacks (6, 0), R = 6, steps of 4: (6, 2), square 40, error 4; 40 > 3 (4 + 1) = 15: sent, (3, 1) + (6, 2)
    told = talk(Laq(2), THREE)
    assert told == [(True, [3, 1]), (False, [3, 1]), (True, [9, 3])]


def test_the_movement_of_the_model_makes_clients_lazier() -> None:
    # 40 <= 24 + 15 fails, 40 <= 26 + 15 holds
    assert talk(Laq(2), THREE, movement=24.0)[2] == (True, [9, 3])
    assert talk(Laq(2), THREE, movement=26.0)[2] == (False, [3, 1])


def test_at_a_tie_it_stays_silent() -> None:
    # 40 <= 25 + 15: the rule as printed skips; the authors' code uploads on >=
    assert talk(Laq(2), THREE, movement=25.0)[2] == (False, [3, 1])

    def uploads_on_ties(change: float, bound: float) -> bool:
        return change >= bound

    assert uploads_on_ties(40.0, 25.0 + 15.0)


def test_an_update_that_is_known_already_divides_by_no_zero() -> None:
    # R = 0 in tensor b alone, then everywhere: no levels travel, and nothing is divided
    known = pair([1, 2, 3, 4, 5, 6, 0, 0, 0, 0])
    link, here = Laq(4, max_lag=1), context(PAIR)  # max_lag 1: always sent
    parcel, state = link.send(known, None, here)
    assert [len(block.fields) for block in parcel.blocks] == [2, 1]
    assert state.estimate["b"].tolist() == [0, 0, 0, 0]
    parcel, after = link.send(state.estimate, state, here)
    assert parcel.field_bytes == 8  # two scales of zero
    assert is_equal(after.estimate, state.estimate)
    assert is_equal(link.receive(parcel, state.estimate, here)[0], state.estimate)
    # without the force there is nothing to say at all
    assert Laq(4).send(state.estimate, state, here)[0] is None


def test_what_is_not_a_number_is_sent_and_arrives_as_such() -> None:
    for bad in (float("nan"), float("inf"), 1e300):
        _, state = Laq(4).send(line(1, 2), None, context(line(1, 2).schema))
        parcel, _ = Laq(4).send(line(bad, 2), state, context(line(1, 2).schema, movement=1e300))
        assert parcel is not None
        assert not np.isfinite(Laq(4).receive(parcel, state.estimate, context(line(1, 2).schema))[0].values).all()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, 10, elements=st.floats(-1e6, 1e6)), arrays(np.float64, 10, elements=st.floats(-1e6, 1e6)),
       st.integers(1, 16))  # fmt: skip
def test_the_error_is_bounded(held: np.ndarray, update: np.ndarray, bits: int) -> None:
    # max |x - Q'| <= R / (2^b - 1), tensor by tensor, but for the rounding of the arithmetic
    state = Quantised(pair(held), 0.0, 0)
    _, after = Laq(bits, max_lag=1).send(pair(update), state, context(PAIR))
    for name in ("a", "b"):
        radius = np.abs(pair(update)[name] - state.estimate[name]).max()
        missed = np.abs(pair(update)[name] - after.estimate[name]).max()
        assert missed <= radius / (2**bits - 1) * (1 + 1e-6) + 1e-9


def test_bytes_by_hand() -> None:
    # 3 bits: 4 + ceil(18 / 8) = 7 and 4 + ceil(12 / 8) = 6
    parcel, _ = Laq(3).send(pair(range(1, 11)), None, context(PAIR))
    assert [block.field_bytes for block in parcel.blocks] == [7, 6]


def test_bytes_of_the_cnn() -> None:
    # the CNN on 28 x 28 with 10 classes: 12 tensors, 421,834 weights; 4 bits: 48 + 210,917; 3 bits: 48 + 158,188
    sizes = (288, 32, 32, 32, 18432, 64, 64, 64, 401408, 128, 1280, 10)
    schema = Schema(tuple(TensorSpec(str(number), (size,)) for number, size in enumerate(sizes)))
    update = Tensors(schema, np.random.default_rng(0).normal(size=schema.size).astype(np.float32))
    for bits, wanted in ((4, 210_965), (3, 158_236)):
        parcel, _ = Laq(bits).send(update, None, context(schema))
        assert parcel is not None
        assert parcel.field_bytes == wanted


def test_the_lag_forces() -> None:
    updates = [line(1, 2)] * 9
    assert [is_sent for is_sent, _ in talk(Laq(4, max_lag=3), updates, movement=1e9)] == [True, False, False] * 3
    assert all(is_sent for is_sent, _ in talk(Laq(4, max_lag=1), updates, movement=1e9))


def test_the_old_error_is_that_of_the_last_upload() -> None:
    # silence keeps Q and its error; only the count of silences moves on
    schema = line(3, 0).schema
    _, sent = Laq(2).send(line(3, 0), None, context(schema))
    _, silent = Laq(2).send(line(3, 0.5), sent, context(schema))
    assert (sent.error, sent.num_silent) == (1.0, 0)
    assert (silent.error, silent.num_silent) == (1.0, 1)
    assert silent.estimate is sent.estimate


def test_float32() -> None:
    schema = Schema(tuple(TensorSpec(spec.name, spec.shape, "float32") for spec in PAIR))
    rng = np.random.default_rng(0)
    sender = receiver = None
    for _ in range(20):
        update = Tensors(schema, rng.normal(size=10).astype(np.float32))
        parcel, sender = Laq(4).send(update, sender, context(schema))
        _, receiver = Laq(4).receive(parcel, receiver, context(schema))
        assert is_equal(sender.estimate, receiver)


@pytest.mark.parametrize("field", [{"bits": 0}, {"bits": 33}, {"max_lag": 0}])
def test_what_is_refused(field: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=rf"laq\.{next(iter(field))} must"):
        Laq(**field)
