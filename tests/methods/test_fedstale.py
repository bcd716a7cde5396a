"""FedStale: rounds by hand, its ends FedAvg and FedVARP, beta in both sums, and a straight-line reference."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError
from fedreuse.core.population import Population
from fedreuse.methods.fedstale import FedStale
from fedreuse.testing.quadratic import QuadraticFederation, Setting
from tests.federation import NOISY, assert_close, build, is_same, plain_problem, top_k
from tests.references.fedstale import fedstale
from tests.servers import start, step, weight

TWO = Population(np.array([10, 30]))


@pytest.mark.parametrize(
    ("weights", "wanted"),
    [
        # ratio: 4;  8 + (4/4) / 2 = 8.5;  (2 - 4/2) + (4/4 + 8 * 3/4) / 2 = 3.5
        ("ratio", [4.0, 12.5, 16.0]),
        # N / m = 2, weights 1/2 and 3/2: 2;  12 + 1/2;  (2 - 4/2) / 2 + 7/2 = 3.5
        ("ht", [2.0, 14.5, 18.0]),
    ],
)
def test_three_rounds_by_hand(weights: str, wanted: list[float]) -> None:
    server, _ = FedStale(beta=0.5, weighting=weights).halves("dense")  # type: ignore[arg-type]
    state, seen = start(server, TWO), []
    for number, (client, update) in enumerate([(0, 4.0), (1, 8.0), (0, 2.0)], start=1):
        _, state, _ = step(server, state, Cohort(number, (client,), 1, population=TWO), {client: update})
        seen.append(weight(server, state))
    assert seen == wanted


@pytest.mark.parametrize("uplink", [None, top_k(0.3)], ids=["dense", "top_k"])
@pytest.mark.parametrize("weights", ["ratio", "ht"])
def test_beta_zero_is_fedavg_bit_for_bit(weights: str, uplink: object) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    stale, plain = (
        federation.play(build(name, uplink, weighting=weights, **own), 6)
        for name, own in (("fedstale", {"beta": 0.0}), ("fedavg", {}))
    )
    assert all(is_same(*pair) for pair in zip(stale.models, plain.models, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("uplink", [None, top_k(0.3)], ids=["dense", "top_k"])
@pytest.mark.parametrize("weights", ["ratio", "ht"])
def test_beta_one_is_fedvarp_bit_for_bit(weights: str, uplink: object) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    stale, varp = (
        federation.play(build(name, uplink, weighting=weights, **own), 6)
        for name, own in (("fedstale", {"beta": 1.0}), ("fedvarp", {}))
    )
    assert all(is_same(*pair) for pair in zip(stale.models, varp.models, strict=True))


def test_round_one_is_fedavg_bit_for_bit() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    stale, plain = (federation.play(build(name), 2) for name in ("fedstale", "fedavg"))
    assert is_same(stale.models[1], plain.models[1])
    assert not is_same(stale.models[2], plain.models[2])


def test_a_round_is_linear_in_beta() -> None:
    # from the same state: D(beta) = (1 - beta) D(0) + beta D(1)
    population = Population(np.array([10, 30, 20]))
    half, _ = FedStale(beta=0.5).halves("dense")
    _, state, _ = step(half, start(half, population), Cohort(1, (0, 1), 1, population=population), {0: 4.0, 1: -3.0})
    moved = {}
    for beta in (0.0, 0.3, 1.0):
        server, _ = FedStale(beta=beta).halves("dense")
        cohort = Cohort(2, (1, 2), 1, population=population)
        _, after, _ = step(server, state, cohort, {1: 5.0, 2: 1.0})
        moved[beta] = weight(server, after) - weight(server, state)
    assert moved[0.3] == pytest.approx(0.7 * moved[0.0] + 0.3 * moved[1.0], rel=1e-13)
    assert moved[0.0] != moved[1.0]


@pytest.mark.parametrize("mistake", ["all", "cohort"])
def test_beta_belongs_to_both_sums(mistake: str) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    problem = plain_problem(federation, 5, 3)
    session = federation.play(build("fedstale", beta=0.4), 5)
    right, wrong = fedstale(problem, 0.4)[-1], fedstale(problem, 0.4, mistake=mistake)[-1]
    assert_close(session.model, *right)
    assert np.abs(session.model.weights.values - wrong[0]).max() > 1e-3


@pytest.mark.parametrize("beta", [0.2, 0.8])
def test_unbiased_over_all_cohorts(beta: float) -> None:
    # N = 5, m = 2, ht: the mean over the ten cohorts of what a round moves is sum alpha_i d_i, whatever is remembered
    population = Population(np.array([3, 1, 4, 1, 5]))
    server, _ = FedStale(beta=beta, weighting="ht").halves("dense")
    _, state, _ = step(
        server, start(server, population), Cohort(1, (0, 1, 3), 1, population=population), {0: 7.0, 1: -2.0, 3: 9.0}
    )
    updates = dict(enumerate([1.0, -3.0, 5.0, 8.0, 2.0]))
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    moves = []
    for pair in pairs:
        cohort = Cohort(2, pair, 1, population=population)
        _, after, _ = step(server, state, cohort, {i: updates[i] for i in pair})
        moves.append(weight(server, after) - weight(server, state))
    exact = sum(population.share(i) * updates[i] for i in updates)
    assert np.mean(moves) == pytest.approx(exact, rel=1e-13)


def test_bytes_are_fedavgs() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    rows = [federation.play(build(name, top_k(0.3)), 4).ledger.rows for name in ("fedstale", "fedavg")]
    assert [row.total_bytes for row in rows[0]] == [row.total_bytes for row in rows[1]]


@pytest.mark.parametrize("ratio", [None, 0.3])
@pytest.mark.parametrize("weights", ["ratio", "ht"])
def test_equals_the_reference(weights: str, ratio: float | None) -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    method = build("fedstale", None if ratio is None else top_k(ratio), beta=0.4, weighting=weights, server_lr=0.7)
    session = federation.play(method, 5, Setting(cohort=4))
    wanted = fedstale(plain_problem(federation, 5, 4), 0.4, weights, ratio, 0.7)
    for model, expected in zip(session.models[1:], wanted, strict=True):
        assert_close(model, *expected)


@pytest.mark.parametrize("field", [{"beta": 1.5}, {"beta": -0.1}, {"server_lr": -1.0}])
def test_what_is_refused(field: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=rf"method\.{next(iter(field))} must"):
        FedStale(**field)  # type: ignore[arg-type]
