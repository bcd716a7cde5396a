"""Privacy accounting of runs with a private mean: number of releases, and the exact epsilon of Gaussian mechanisms.

A client that takes part in rounds with factors d_1, d_2, ... on its clipped update takes part in as many Gaussian
mechanisms of sensitivity d_t clip. Together they are one Gaussian mechanism (Dong, Roth, Su, 2022), that of
`releases = sum of d_t^2` full ones, whose delta is known for every epsilon (Balle & Wang, ICML 2018):

mu             = sqrt(releases) / noise
delta(epsilon) = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu)

Neighbouring runs differ in the presence of one client. No amplification by sampling is assumed.
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fedreuse.accounting.ledger import EventRow

__all__ = ["epsilon", "gaussian_delta", "releases"]


def releases(events: Iterable[EventRow], rho: float | None = None) -> float:
    """Return the largest sum of squared factors of any client.

    Args:
        events: One per selected client and round.
        rho: Factor per round of age on reused updates, if the rounds in which a client is reused reveal nothing about
            its data; None counts every selection in full.
    """
    spent: dict[int, float] = {}
    for event in events:
        is_decayed = rho is not None and event.outcome == "reused" and event.age is not None
        factor = rho**event.age if is_decayed else 1.0  # type: ignore[operator]  # checked in the line above
        spent[event.client] = spent.get(event.client, 0.0) + factor**2
    return max(spent.values(), default=0.0)


def epsilon(noise: float, releases: float, delta: float) -> float:
    """Return the epsilon of `releases` Gaussian mechanisms with this noise multiplier, without subsampling.

    It is the least epsilon with delta(epsilon) <= delta, rounded up, and at most that of a Renyi accountant, which is
    mu^2 / 2 + mu sqrt(2 ln(1 / delta)).

    Example:
        >>> from fedreuse.robustness.privacy_accountant import epsilon
        >>> round(epsilon(noise=4.0, releases=10, delta=1e-5), 2)
        3.34
    """
    if not releases:
        return 0.0
    mu = sqrt(releases) / noise
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    low, high = 0.0, mu**2 / 2 + mu * sqrt(2 * log(1 / delta))
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if gaussian_delta(middle, mu) <= delta else (middle, high)
    return high  # the end at which the bound holds


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the least delta for epsilon of a Gaussian mechanism whose sensitivity is mu standard deviations."""
    from scipy.special import log_ndtr

    above, below = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return exp(above) - exp(below)  # in logarithms, since e^epsilon can overflow
