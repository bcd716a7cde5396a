"""Releases by hand, and epsilon against published values, its definition and the Renyi bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedreuse.accounting.ledger import EventRow
from fedreuse.robustness.privacy_accountant import epsilon, gaussian_delta, releases


def event(client: int, outcome: str, age: int | None = None) -> EventRow:
    return EventRow(1, client, outcome, "", age, None)


def test_the_client_that_was_selected_most_counts() -> None:
    events = [event(0, "fresh"), event(0, "lost"), event(1, "fresh"), event(0, "reused", 2), event(1, "dropped")]
    assert releases(events) == 3
    assert releases(events, rho=0.5) == 1 + 1 + 0.5**4  # a cached update of age 2 enters with rho^2
    assert releases([]) == 0


@pytest.mark.parametrize("noise", [0.7, 2.0, 5.0])
def test_epsilon_is_below_the_renyi_bound(noise: float) -> None:
    """Six Gaussian mechanisms have a Renyi divergence of 6 a / (2 noise^2) at order a."""
    orders = np.linspace(1.01, 200, 100_000)
    renyi = float(np.min(6 * orders / (2 * noise**2) + math.log(1e5) / (orders - 1)))
    assert 0.7 * renyi < epsilon(noise, 6, 1e-5) < 0.96 * renyi


@pytest.mark.parametrize(
    ("mu", "loss", "delta"), [(1.0, 1.0, 0.12693674), (3.0, 1.0, 0.78760074), (1.0, 2.0, 0.02092364)]
)
def test_delta_is_the_published_one(mu: float, loss: float, delta: float) -> None:
    """Values of Google's dp-accounting for the Gaussian mechanism."""
    assert gaussian_delta(loss, mu) == pytest.approx(delta, abs=5e-9)


def test_epsilon_is_the_published_one() -> None:
    """In dp-accounting's tests, (16, 1e-5) needs a deviation of 0.344, which has three digits."""
    assert epsilon(0.3445, 1, 1e-5) < 16 < epsilon(0.3435, 1, 1e-5)


@pytest.mark.parametrize(("mu", "loss"), [(0.5, 0.3), (1.0, 4.0), (3.0, 10.0)])
def test_delta_is_the_divergence_of_two_normal_distributions(mu: float, loss: float) -> None:
    x = np.linspace(-12, 12 + mu, 2_000_001)
    with_client, without = (np.exp(-((x - centre) ** 2) / 2) / np.sqrt(2 * np.pi) for centre in (mu, 0.0))
    excess = np.maximum(with_client - np.exp(loss) * without, 0.0)
    assert gaussian_delta(loss, mu) == pytest.approx(float(np.sum(excess) * (x[1] - x[0])), rel=1e-5)


@pytest.mark.parametrize("noise", [0.05, 0.7, 4.0, 1000.0])
def test_epsilon_is_the_least_for_which_delta_holds(noise: float) -> None:
    found = epsilon(noise, 10, 1e-5)
    mu = math.sqrt(10) / noise
    assert gaussian_delta(found, mu) <= 1e-5 < gaussian_delta(found * (1 - 1e-9), mu)


def test_so_much_noise_that_delta_alone_is_enough() -> None:
    assert epsilon(1e6, 1, 1e-5) == 0


def test_reuse_costs_less_than_fresh_releases_and_more_than_none() -> None:
    # fresh, then reused at ages 1, 2, 3 with rho 0.7: 1 + 0.49 + 0.2401 + 0.117649 releases
    count = releases([event(0, "fresh"), *(event(0, "reused", age) for age in (1, 2, 3))], rho=0.7)
    assert count == pytest.approx(1.847749)
    assert epsilon(2.0, 1, 1e-5) < epsilon(2.0, count, 1e-5) < epsilon(2.0, 4, 1e-5)


def test_more_noise_and_fewer_releases_reveal_less() -> None:
    assert epsilon(4.0, 10, 1e-5) < epsilon(2.0, 10, 1e-5) < epsilon(2.0, 20, 1e-5) < epsilon(2.0, 20, 1e-7)
    assert epsilon(1.0, 0, 1e-5) == 0
