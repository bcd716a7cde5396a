"""Modelled energy by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.accounting.energy import RADIOS, EnergyModel
from fedreuse.core.errors import ConfigError


def test_by_hand() -> None:
    # at 8 Mbit/s: (0.28317 * 8 + 0.13286) W / 1e6 B/s up, (0.13701 * 8 + 0.13286) W / 1e6 B/s down
    spent = EnergyModel(watts=3, radio="wifi", mbps=8).joules(10, 2_000_000, 1_000_000)
    assert spent["processor"] == 30
    assert spent["radio up"] == pytest.approx(2 * (0.28317 * 8 + 0.13286))
    assert spent["radio down"] == pytest.approx(0.13701 * 8 + 0.13286)


def test_a_faster_line_costs_less_per_byte_and_sending_more_than_receiving() -> None:
    for radio in RADIOS.values():
        assert radio.joules_per_byte("up", 20) < radio.joules_per_byte("up", 2)
        assert radio.joules_per_byte("down", 10) < radio.joules_per_byte("up", 10)


def test_assumptions_are_said_and_impossible_ones_refused() -> None:
    assert str(EnergyModel(radio="lte")) == (
        "4 W per busy core; lte at 10 Mbit/s, joules per byte of Huang et al. (MobiSys 2012)"
    )
    with pytest.raises(ConfigError, match="radio '5g' is not in the table; known: 3g, lte, wifi"):
        EnergyModel(radio="5g")
    with pytest.raises(ConfigError, match="watts must be above 0, got 0"):
        EnergyModel(watts=0)
    with pytest.raises(ConfigError, match="mbps must be above 0"):
        EnergyModel(mbps=-1)


def test_the_page_tells_the_same_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "measure-traffic.md").read_text(encoding="utf-8")
    for name, radio in RADIOS.items():
        assert f"| `{name}` | {radio.up:.5f} | {radio.down:.5f} | {radio.base:.5f} |" in page
