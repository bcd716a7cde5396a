"""Simulated amendments: what is reported keeps the promise, and the naive way does not."""

from __future__ import annotations

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.lab.plans.gaming import STRATEGIES, simulate_gaming


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_false_claims_stay_below_the_level(strategy: str) -> None:
    found = simulate_gaming(strategy, repetitions=300, seed=5)
    assert found.reported <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5
    assert found.reported <= found.naive


@pytest.mark.slow
def test_the_naive_way_would_be_noticed() -> None:
    for strategy in ("three of four contrasts dropped", "seeds added after each look"):
        assert simulate_gaming(strategy, repetitions=300, seed=5).naive > 0.09


def test_an_unknown_strategy() -> None:
    with pytest.raises(ConfigError, match="one plan, three of four"):
        simulate_gaming("none")
