"""Conditions of a line: what people write, in numbers."""

from __future__ import annotations

import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.deploy.meter.conditions import FREE, Conditions


def test_what_people_write() -> None:
    line = Conditions.parse("10mbit", "50ms", "1%")
    assert (line.bits_per_second, line.delay_seconds, line.loss) == (1e7, 0.05, 0.01)
    assert str(line) == "10mbit, 50ms, 1%"
    assert Conditions.parse("2.5 Kbit", "1s") == Conditions(2500.0, 1.0)
    assert Conditions.parse() == FREE
    assert str(FREE) == "free"


def test_time_on_the_line() -> None:
    # 1250 bytes are 10,000 bits: a millisecond at 10 Mbit/s
    assert Conditions.parse("10mbit").seconds_of(1250) == 0.001
    assert FREE.seconds_of(10**9) == 0.0


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ({"bandwidth": "10"}, "bandwidth"),
        ({"bandwidth": "0mbit"}, "bandwidth"),
        ({"delay": "fast"}, "delay"),
        ({"delay": "-5ms"}, "delay"),
        ({"loss": "0.01"}, "loss"),
        ({"loss": "100%"}, "loss"),
    ],
)
def test_nonsense_is_refused_by_name(parts: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Conditions.parse(**parts)
