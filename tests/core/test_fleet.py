"""Devices in simulated time: hand-worked transfers over constant, changing and pausing rates, and their inverse."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedreuse.core.fleet import Device, Rates


def test_constant_rates_are_the_formula() -> None:
    device = Device(Rates((1e6,)), Rates((4e6,)), Rates((2e9,)), latency=0.05)
    # 0.05 + 8e6 / 4e6 = 2.05; + 1e9 / 2e9 = 2.55; + 4e5 / 1e6 = 2.95; + 0.05 = 3.0; all after second 10
    timing = device.timing(10.0, down_bytes=1_000_000, flops=1_000_000_000, up_bytes=50_000)
    assert timing == (pytest.approx(12.05), pytest.approx(12.55), pytest.approx(13.0))


def test_a_rate_that_changes_by_hand() -> None:
    rates = Rates((10.0, 2.0), (0.0, 4.0))
    # from second 3: 10 units until 4, then 2 per second
    assert rates.end(3.0, 10) == 4.0
    assert rates.end(3.0, 14) == 6.0
    assert rates.end(100.0, 14) == 107.0


def test_a_pause_is_waited_for() -> None:
    pausing = Rates((0.0, 5.0), (0.0, 8.0))
    assert pausing.end(1.0, 10) == 10.0
    day = Rates((1.0, 0.0), (0.0, 2.0), period=10.0)
    assert day.end(0.0, 2) == 2.0  # not 10: the second window is not touched
    assert day.end(5.0, 2) == 12.0
    assert day.end(1.0, 5) == 22.0  # 1 unit until 2, 2 until 12, 2 until 22
    assert day.end(21.0, 1) == 22.0
    assert day.end(3.0, 0) == 3.0


def test_the_usual_rate_leaves_out_pauses() -> None:
    assert Rates((7.0,)).usual == 7.0
    assert Rates((7.0, 3.0), (0.0, 5.0)).usual == 3.0
    # 2 s at 6 and 3 s at 1 of a period of 10 s: 15 units in 5 s
    assert Rates((6.0, 1.0, 0.0), (0.0, 2.0, 5.0), period=10.0).usual == 3.0


def test_what_never_ends_is_infinite() -> None:
    assert Rates((0.0,)).end(0.0, 1) == inf
    assert Rates((3.0, 0.0), (0.0, 1.0)).end(0.0, 4) == inf
    assert Rates((0.0, 0.0), (0.0, 1.0), period=2.0).end(0.0, 1) == inf
    assert Rates((inf,)).end(7.0, 1e12) == 7.0


@given(
    st.lists(st.integers(0, 5), min_size=2, max_size=5).filter(any),
    st.floats(0, 100),
    st.integers(1, 60),
    st.booleans(),
)
def test_the_end_has_seen_the_amount(values: list[int], start: float, amount: int, is_periodic: bool) -> None:
    times = tuple(2.0 * at for at in range(len(values)))
    period = 2.0 * len(values) if is_periodic else None
    if period is None and not values[-1]:
        values = [*values[:-1], 1]
    end = Rates(tuple(map(float, values)), times, period).end(start, amount)
    steps = 200_000 if end - start > 2_000 else 20_000
    width = (end - start) / steps
    # the integral of the rate by the midpoint rule
    total = 0.0
    for step in range(0, steps, 100):
        middle = start + (step + 50) * width
        place = middle if period is None else middle % period
        total += 100 * width * values[min(int(place // 2), len(values) - 1)]
    assert total == pytest.approx(amount, rel=0.05, abs=1.5)
