"""A stated model of what clients spend: processor seconds times watts, bytes times the joules of a radio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fedreuse.core.errors import ConfigError, require, suggest

__all__ = ["RADIOS", "EnergyModel", "Radio"]

_BITS = 8


@dataclass(frozen=True)
class Radio:
    """A radio of a phone: power in W is `base` plus `up` (or `down`) times the rate in Mbit/s."""

    up: float
    down: float
    base: float

    def joules_per_byte(self, direction: Literal["up", "down"], mbps: float) -> float:
        """While it sends or receives at this rate; idle time and tails after a transfer are left out."""
        return _BITS * ((self.up if direction == "up" else self.down) + self.base / mbps) / 1e6


RADIOS: Mapping[str, Radio] = {
    "lte": Radio(0.43839, 0.05197, 1.28804),
    "3g": Radio(0.86898, 0.12212, 0.81788),
    "wifi": Radio(0.28317, 0.13701, 0.13286),
}
"""Huang et al., A close examination of performance and power characteristics of 4G LTE networks, MobiSys 2012: the
linear models of their phones. Not copied from the paper: seven of the nine numbers were found again in public code and
notes that cite its table; `down` of 3g and of wifi were not, and stand here unverified."""


@dataclass(frozen=True)
class EnergyModel:
    """How modelled energy is computed.

    Args:
        watts: What one busy core of a client draws, above 0; an assumption about the device.
        radio: A radio of the table: `lte`, `3g` or `wifi`. The downlink slopes of `3g` and `wifi` are unverified.
        mbps: The rate of transfers in Mbit/s, above 0.

    Raises:
        ConfigError: A number out of range, or a radio that is not in the table.

    Example:
        >>> from fedreuse.accounting.energy import EnergyModel
        >>> spent = EnergyModel(watts=4, radio="wifi", mbps=10).joules(seconds=2.0, up_bytes=1_000_000, down_bytes=0)
        >>> {name: round(number, 2) for name, number in spent.items()}
        {'processor': 8.0, 'radio up': 2.37, 'radio down': 0.0}
    """

    watts: float = 4.0
    radio: str = "wifi"
    mbps: float = 10.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(self.watts > 0, "watts must be above 0", self.watts)
        require(self.mbps > 0, "mbps must be above 0", self.mbps)
        if self.radio not in RADIOS:
            raise ConfigError(f"radio '{self.radio}' is not in the table; {suggest(self.radio, RADIOS)}")

    def joules(self, seconds: float, up_bytes: float, down_bytes: float) -> dict[str, float]:
        """Of so many processor seconds and bytes."""
        radio = RADIOS[self.radio]
        return {
            "processor": seconds * self.watts,
            "radio up": up_bytes * radio.joules_per_byte("up", self.mbps),
            "radio down": down_bytes * radio.joules_per_byte("down", self.mbps),
        }

    def __str__(self) -> str:
        """The assumptions, for people."""
        return (
            f"{self.watts:g} W per busy core; {self.radio} at {self.mbps:g} Mbit/s, joules per byte of Huang et al. "
            "(MobiSys 2012)"
        )
