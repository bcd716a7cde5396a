"""Releases by hand, and epsilon against published values, its definition and a Renyi accountant."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedreuse.accounting.ledger import EventRow
from fedreuse.core.errors import ConfigError
from fedreuse.robustness import privacy_accountant as privacy
from fedreuse.robustness.privacy_accountant import epsilon, gaussian_delta, releases

ORDERS = [1.5, 2.0, 3.0, 4.5, 6.0, 8.0, 12.0, 20.0, 40.0, 64.0]


def event(client: int, outcome: str, age: int | None = None) -> EventRow:
    return EventRow(1, client, outcome, "", age, None)


def test_the_client_that_was_selected_most_counts() -> None:
    events = [event(0, "fresh"), event(0, "lost"), event(1, "fresh"), event(0, "reused", 2), event(1, "dropped")]
    assert releases(events) == 3
    assert releases(events, rho=0.5) == 1 + 1 + 0.5**4  # a cached update of age 2 enters with rho^2
    assert releases([]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.7, 2.0, 5.0])
def test_epsilon_is_below_the_renyi_accountants_for_whole_releases(noise: float) -> None:
    from opacus.accountants import RDPAccountant

    accountant = RDPAccountant()
    for _ in range(6):
        accountant.step(noise_multiplier=noise, sample_rate=1.0)
    theirs = accountant.get_epsilon(1e-5, alphas=list(privacy._ORDERS))
    assert privacy._renyi_epsilon(noise, 6, 1e-5) == pytest.approx(theirs, rel=1e-12)
    assert 0.9 * theirs < epsilon(noise, 6, 1e-5) < 0.96 * theirs


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


def test_reuse_is_bounded_by_composing_its_mechanisms_one_by_one() -> None:
    from opacus.accountants.analysis import rdp

    # fresh, then reused at ages 1, 2, 3 with rho 0.7: four mechanisms of sensitivity 0.7^age, composed by the library
    noise, factors = 2.0, [0.7**age for age in range(4)]
    one_by_one = sum(
        rdp.compute_rdp(q=1.0, noise_multiplier=noise / factor, steps=1, orders=ORDERS) for factor in factors
    )
    count = releases([event(0, "fresh"), *(event(0, "reused", age) for age in (1, 2, 3))], rho=0.7)
    together = rdp.compute_rdp(q=1.0, noise_multiplier=noise, steps=count, orders=ORDERS)
    assert together == pytest.approx(one_by_one, rel=1e-12)
    assert epsilon(noise, count, 1e-5) < epsilon(noise, 4, 1e-5)  # less than four full releases
    assert epsilon(noise, count, 1e-5) > epsilon(noise, 1, 1e-5)  # and more than one: reuse is not free


def test_more_noise_and_fewer_releases_reveal_less() -> None:
    assert epsilon(4.0, 10, 1e-5) < epsilon(2.0, 10, 1e-5) < epsilon(2.0, 20, 1e-5) < epsilon(2.0, 20, 1e-7)
    assert epsilon(1.0, 0, 1e-5) == 0


def test_without_an_accountant_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privacy, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'fedreuse\[privacy\]'"):
        epsilon(1.0, 1, 1e-5)
