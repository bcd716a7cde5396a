"""FedVARP: rounds by hand, no variance when nothing is new, the old memory before the new, a reference."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError
from fedreuse.core.population import Population
from fedreuse.methods.aliases import FedVarp
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import NOISY, assert_close, build, is_same, plain_problem, top_k
from tests.references.fedvarp import fedvarp
from tests.references.mifa import mifa
from tests.servers import Decaying, start, step, weight

TWO = Population(np.array([10, 30]))


@pytest.mark.parametrize(
    ("weights", "wanted"),
    [
        # ratio: 4;  8 + 4/4 = 9;  (2 - 4) + (4/4 + 8 * 3/4) = 5
        ("ratio", [4.0, 13.0, 18.0]),
        # N / m = 2, weights 1/2 and 3/2: 2;  12 + 1;  (2 - 4) / 2 + 7 = 6
        ("ht", [2.0, 15.0, 21.0]),
    ],
)
def test_three_rounds_by_hand(weights: str, wanted: list[float]) -> None:
    server, _ = FedVarp(weighting=weights).halves("dense")  # type: ignore[arg-type]
    state, seen = start(server, TWO), []
    for number, (client, update) in enumerate([(0, 4.0), (1, 8.0), (0, 2.0)], start=1):
        _, state, _ = step(server, state, Cohort(number, (client,), 1, population=TWO), {client: update})
        seen.append(weight(server, state))
    assert seen == wanted


@pytest.mark.slow
def test_with_everybody_it_is_fedavg_and_mifa() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    setting = Setting(cohort=8)
    varp, plain, remembered = (federation.play(build(name), 6, setting) for name in ("fedvarp", "fedavg", "mifa"))
    for one, two, three in zip(varp.models, plain.models, remembered.models, strict=True):
        np.testing.assert_allclose(one.weights.values, two.weights.values, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(three.weights.values, two.weights.values, rtol=1e-12, atol=1e-14)


def test_round_one_is_fedavg_bit_for_bit() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    for weights in ("ratio", "ht"):
        varp, plain = (federation.play(build(name, weighting=weights), 2) for name in ("fedvarp", "fedavg"))
        assert is_same(varp.models[1], plain.models[1])
        assert not is_same(varp.models[2], plain.models[2])


@pytest.mark.parametrize("weights", ["ratio", "ht"])
def test_no_variance_when_the_memory_is_right(weights: str) -> None:
    # every client would send again what is remembered of it: the move is sum alpha_i d_i for every cohort
    population = Population(np.array([3, 1, 4, 1, 5]))
    updates = dict(enumerate([1.0, -3.0, 5.0, 8.0, 2.0]))
    server, _ = FedVarp(weighting=weights).halves("dense")  # type: ignore[arg-type]
    everybody = Cohort(1, tuple(range(5)), 1, population=population)
    _, state, _ = step(server, start(server, population), everybody, updates)
    exact = sum(population.share(i) * updates[i] for i in updates)
    for pair in [(i, j) for i in range(5) for j in range(i + 1, 5)]:
        cohort = Cohort(2, pair, 1, population=population)
        _, after, _ = step(server, state, cohort, {i: updates[i] for i in pair})
        assert weight(server, after) - weight(server, state) == pytest.approx(exact, rel=1e-13)


def test_unbiased_over_all_cohorts() -> None:
    # N = 5, m = 2, ht: the mean over the ten cohorts is sum alpha_i d_i, whatever is remembered
    population = Population(np.array([3, 1, 4, 1, 5]))
    server, _ = FedVarp(weighting="ht").halves("dense")
    _, state, _ = step(
        server, start(server, population), Cohort(1, (0, 2), 1, population=population), {0: 7.0, 2: -2.0}
    )
    updates = dict(enumerate([1.0, -3.0, 5.0, 8.0, 2.0]))
    moves = []
    for pair in [(i, j) for i in range(5) for j in range(i + 1, 5)]:
        cohort = Cohort(2, pair, 1, population=population)
        _, after, _ = step(server, state, cohort, {i: updates[i] for i in pair})
        moves.append(weight(server, after) - weight(server, state))
    assert np.mean(moves) == pytest.approx(sum(population.share(i) * updates[i] for i in updates), rel=1e-13)


def test_the_old_memory_is_used_not_the_new() -> None:
    # with the new one the fresh terms cancel and what is left is MIFA
    federation = QuadraticFederation.draw(training=NOISY)
    problem = plain_problem(federation, 5, 3)
    session = federation.play(build("fedvarp"), 5)
    wrong = fedvarp(problem, mistake="new h")[-1]
    np.testing.assert_allclose(wrong[0], mifa(problem)[-1][0], rtol=1e-12)
    assert np.abs(session.model.weights.values - wrong[0]).max() > 1e-3


def test_memories_are_rescaled_when_the_learning_rate_falls() -> None:
    federation = Decaying.draw(training=NOISY)
    problem = plain_problem(federation, 5, 3)
    session = federation.play(build("fedvarp"), 5)
    for model, expected in zip(session.models[1:], fedvarp(problem, gamma=0.7), strict=True):
        assert_close(model, *expected)
    wrong = fedvarp(problem, gamma=0.7, mistake="no rescaling")[-1]
    assert np.abs(session.model.weights.values - wrong[0]).max() > 1e-3


@pytest.mark.parametrize("ratio", [None, 0.3])
@pytest.mark.parametrize("weights", ["ratio", "ht"])
def test_equals_the_reference(weights: str, ratio: float | None) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    method = build("fedvarp", None if ratio is None else top_k(ratio), weighting=weights)
    session = federation.play(method, 5)
    wanted = fedvarp(plain_problem(federation, 5, 3), weights, ratio)
    for model, expected in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *expected)


def test_a_negative_step_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"method\.server_lr must not be negative, got -1"):
        FedVarp(server_lr=-1)
