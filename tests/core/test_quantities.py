"""Quantities: texts with units, plain numbers, and what is neither."""

from __future__ import annotations

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.quantities import BITS, FLOPS, SECONDS, quantity


def test_units_by_hand() -> None:
    assert quantity("up", "56kbit", BITS, "10mbit") == 56_000
    assert quantity("up", " 0.5 MBIT ", BITS, "10mbit") == 500_000
    assert quantity("latency", "50ms", SECONDS, "50ms") == pytest.approx(0.05)
    assert quantity("compute", "2gflops", FLOPS, "2gflops") == 2e9
    assert quantity("up", 1e6, BITS, "10mbit") == 1e6


@pytest.mark.parametrize("wrong", ["10", "10 mb", "fast", "-1mbit", True, None, float("nan"), float("inf"), [1]])
def test_anything_else_is_refused_with_an_example(wrong: object) -> None:
    with pytest.raises(ConfigError, match=r"devices\.up.*10mbit"):
        quantity("devices.up", wrong, BITS, "10mbit")
