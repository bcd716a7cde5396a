"""Privacy accounting of runs with a private mean: number of releases, and the exact epsilon of Gaussian mechanisms.

A client that takes part in rounds with factors d_1, d_2, ... on its clipped update takes part in as many Gaussian
mechanisms of sensitivity d_t clip. Together they are one Gaussian mechanism (Dong, Roth, Su, 2022), that of
`releases = sum of d_t^2` full ones, whose delta is known for every epsilon (Balle & Wang, ICML 2018):

mu             = sqrt(releases) / noise
delta(epsilon) = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu)

Neighbouring runs differ in the presence of one client. No amplification by sampling is assumed.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from math import exp, sqrt
from typing import TYPE_CHECKING

from fedreuse.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fedreuse.accounting.ledger import EventRow

__all__ = ["epsilon", "gaussian_delta", "releases", "require_accountant"]

_ORDERS = (*(1 + step / 20 for step in range(1, 200)), *map(float, range(11, 257)), 512.0, 1024.0)


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

    It is the least epsilon with delta(epsilon) <= delta, rounded up, and at most that of Opacus' Renyi accountant.

    Example:
        >>> from fedreuse.robustness.privacy_accountant import epsilon
        >>> round(epsilon(noise=4.0, releases=10, delta=1e-5), 2)
        3.34
    """
    require_accountant()
    if not releases:
        return 0.0
    mu = sqrt(releases) / noise
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    low, high = 0.0, _renyi_epsilon(noise, releases, delta)
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if gaussian_delta(middle, mu) <= delta else (middle, high)
    return high  # the end at which the bound holds


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the least delta for epsilon of a Gaussian mechanism whose sensitivity is mu standard deviations."""
    from scipy.special import log_ndtr

    above, below = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return exp(above) - exp(below)  # in logarithms, since e^epsilon can overflow


def _renyi_epsilon(noise: float, releases: float, delta: float) -> float:
    from opacus.accountants.analysis import rdp

    orders = list(_ORDERS)
    spent = rdp.compute_rdp(q=1.0, noise_multiplier=noise, steps=releases, orders=orders)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a best order at the end of the list: only the start is looser
        best, _ = rdp.get_privacy_spent(orders=orders, rdp=spent, delta=delta)
    return float(best)


def require_accountant() -> None:
    """Raise a `ConfigError` if Opacus, which computes epsilon, is not installed."""
    if find_spec("opacus") is None:
        raise ConfigError(
            "method.aggregate: private_mean needs Opacus, which is not installed, to report epsilon; "
            "pip install 'fedreuse[privacy]'"
        )
