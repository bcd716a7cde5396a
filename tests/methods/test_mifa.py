"""MIFA: rounds by hand, its three starts, learning rates that fall, and a straight-line reference."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError
from fedreuse.core.population import Population
from fedreuse.core.tensors import is_equal
from fedreuse.methods.mifa import Mifa
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import NOISY, assert_close, build, is_same, plain_problem, top_k
from tests.references.mifa import mifa
from tests.servers import Decaying, start, step, weight

TWO = Population(np.array([10, 30]))
ROUNDS = [(0, 4.0), (1, 8.0), (0, 2.0)]


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        # 4/4 = 1;  4/4 + 8 * 3/4 = 7;  2/4 + 6 = 6.5
        ("zero", [1.0, 8.0, 14.5]),
        # client 0 alone: 4;  then as above
        ("seen", [4.0, 11.0, 17.5]),
    ],
)
def test_three_rounds_by_hand(how: str, wanted: list[float]) -> None:
    server, _ = Mifa(start=how).halves("dense")  # type: ignore[arg-type]
    state, seen = start(server, TWO), []
    for number, (client, update) in enumerate(ROUNDS, start=1):
        _, state, _ = step(server, state, Cohort(number, (client,), 1, population=TWO), {client: update})
        seen.append(weight(server, state))
    assert seen == wanted


def test_a_full_start_by_hand() -> None:
    # round 1 asks both: 4/4 + 8 * 3/4 = 7; round 2 client 0 alone: 2/4 + 6 = 6.5
    server, _ = Mifa(start="full").halves("dense")
    asked, state, _ = step(server, start(server, TWO), Cohort(1, (0,), 1, population=TWO), {0: 4.0, 1: 8.0})
    assert list(asked) == [0, 1]
    assert weight(server, state) == 7.0
    asked, state, _ = step(server, state, Cohort(2, (0,), 1, population=TWO), {0: 2.0})
    assert list(asked) == [0]
    assert weight(server, state) == 13.5


@pytest.mark.slow
def test_with_everybody_it_is_fedavg() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    for how in ("zero", "full", "seen"):
        remembered, plain = (
            federation.play(build(name, **own), 6, Setting(cohort=8))
            for name, own in (("mifa", {"start": how}), ("fedavg", {}))
        )
        for one, other in zip(remembered.models, plain.models, strict=True):
            np.testing.assert_allclose(one.weights.values, other.weights.values, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(one.buffers.values, other.buffers.values, rtol=1e-12)
            assert is_equal(one.counters, other.counters)


def test_round_one_from_zero_is_a_share_of_fedavgs_step() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    origin = federation.initial.weights.values
    remembered, plain, seen = (
        federation.play(build(name, **own), 1).model.weights.values - origin
        for name, own in (("mifa", {}), ("fedavg", {}), ("mifa", {"start": "seen"}))
    )
    share = sum(federation.population.share(i) for i in federation.cohort(1, 3).clients)
    np.testing.assert_allclose(remembered, share * plain, rtol=1e-11)
    np.testing.assert_allclose(seen, plain, rtol=1e-11)


def test_constant_updates_give_the_exact_mean_once_everybody_was_seen() -> None:
    population = Population(np.array([3, 1, 4, 1, 5]))
    updates = dict(enumerate([1.0, -3.0, 5.0, 8.0, 2.0]))
    exact = sum(population.share(i) * updates[i] for i in updates)
    for how in ("zero", "seen"):
        server, _ = Mifa(start=how).halves("dense")  # type: ignore[arg-type]
        state = start(server, population)
        for number, pair in enumerate([(0, 1), (2, 3), (3, 4), (0, 4), (1, 2)], start=1):
            before = weight(server, state)
            cohort = Cohort(number, pair, 1, population=population)
            _, state, _ = step(server, state, cohort, {i: updates[i] for i in pair})
            if number >= 3:
                assert weight(server, state) - before == pytest.approx(exact, rel=1e-12)


def test_a_full_start_is_charged() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    rows = federation.play(build("mifa", start="full"), 2).ledger.rows
    count = {
        (number, direction): sum(row.round_number == number and row.direction == direction for row in rows)
        for number in (1, 2)
        for direction in ("down", "up")
    }
    assert count == {(1, "down"): 8, (1, "up"): 8, (2, "down"): 3, (2, "up"): 3}


@pytest.mark.parametrize("how", ["zero", "full", "seen"])
def test_memories_are_rescaled_when_the_learning_rate_falls(how: str) -> None:
    federation = Decaying.draw(training=NOISY)
    problem = plain_problem(federation, 5, 3)
    session = federation.play(build("mifa", start=how), 5)
    for model, expected in zip(session.models[1:], mifa(problem, how, gamma=0.7), strict=True):
        assert_close(model, *expected)
    wrong = mifa(problem, how, gamma=0.7, mistake="no rescaling")[-1]
    assert np.abs(session.model.weights.values - wrong[0]).max() > 1e-3


def test_rescaling_by_hand() -> None:
    # round 1, rate 1: client 0 sends 4 -> moves 4/4 = 1; round 2, rate 1/2: client 1 sends 2, which is 4 per rate:
    # 1/2 (4/4 + 4 * 3/4) = 2; without rescaling it would be 4/4 + 2 * 3/4 = 2.5
    server, _ = Mifa().halves("dense")
    _, state, _ = step(server, start(server, TWO), Cohort(1, (0,), 1, population=TWO), {0: 4.0})
    _, state, _ = step(server, state, Cohort(2, (1,), 1, population=TWO, lr_factor=0.5), {1: 2.0})
    assert weight(server, state) == 3.0


@pytest.mark.parametrize("ratio", [None, 0.3])
@pytest.mark.parametrize("how", ["zero", "full", "seen"])
def test_equals_the_reference(how: str, ratio: float | None) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    method = build("mifa", None if ratio is None else top_k(ratio), start=how, server_lr=0.6)
    session = federation.play(method, 5)
    wanted = mifa(plain_problem(federation, 5, 3), how, ratio, 0.6)
    for model, expected in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *expected)


def test_ratio_one_is_dense_bit_for_bit() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    dense, whole = (federation.play(build("mifa", uplink), 4) for uplink in (None, top_k(1.0)))
    assert is_same(dense.model, whole.model)


def test_a_negative_step_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"method\.server_lr must not be negative, got -1"):
        Mifa(server_lr=-1)
