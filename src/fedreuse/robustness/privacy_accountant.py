"""Privacy accounting of runs with a private mean: number of releases, and epsilon by Opacus' Renyi accountant.

A client that takes part in rounds with factors d_1, d_2, ... on its clipped update takes part in as many Gaussian
mechanisms of sensitivity d_t clip. Their Renyi divergences of order alpha add up to alpha / (2 noise^2) sum of d_t^2,
which is that of `releases = sum of d_t^2` full mechanisms.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from fedreuse.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fedreuse.accounting.ledger import EventRow

__all__ = ["epsilon", "releases", "require_accountant"]

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

    Example:
        >>> from fedreuse.robustness.privacy_accountant import epsilon
        >>> round(epsilon(noise=4.0, releases=10, delta=1e-5), 2)
        3.62
    """
    require_accountant()
    from opacus.accountants.analysis import rdp

    if not releases:
        return 0.0
    orders = list(_ORDERS)
    spent = rdp.compute_rdp(q=1.0, noise_multiplier=noise, steps=releases, orders=orders)
    best, _ = rdp.get_privacy_spent(orders=orders, rdp=spent, delta=delta)
    return float(best)


def require_accountant() -> None:
    """Raise a `ConfigError` if Opacus, which computes epsilon, is not installed."""
    if find_spec("opacus") is None:
        raise ConfigError(
            "method.aggregate: private_mean needs Opacus, which is not installed, to report epsilon; "
            "pip install 'fedreuse[privacy]'"
        )
