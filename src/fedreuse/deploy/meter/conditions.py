"""Conditions of a line: bandwidth, delay and loss, written as `10mbit`, `50ms`, `1%`."""

from __future__ import annotations

from dataclasses import dataclass

from fedreuse.core.errors import require
from fedreuse.core.quantities import BITS, SECONDS, quantity

__all__ = ["FREE", "Conditions"]


@dataclass(frozen=True)
class Conditions:
    """Conditions of one direction of a line.

    Args:
        bits_per_second: Bandwidth, above 0; None for no limit.
        delay_seconds: One-way delay, at least 0.
        loss: Share of lost packets, in [0, 1).

    Raises:
        ConfigError: A value out of range.
    """

    bits_per_second: float | None = None
    delay_seconds: float = 0.0
    loss: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        bandwidth = self.bits_per_second
        require(bandwidth is None or bandwidth > 0, "bandwidth must be above 0", bandwidth)
        require(self.delay_seconds >= 0, "delay must not be negative", self.delay_seconds)
        require(0 <= self.loss < 1, "loss must be at least 0 % and below 100 %", self.loss)

    @classmethod
    def parse(cls, bandwidth: str | None = None, delay: str | None = None, loss: str | None = None) -> Conditions:
        """Parse texts such as `10mbit`, `50ms` and `1%`; None for no effect."""
        return cls(
            None if bandwidth is None else quantity("bandwidth", bandwidth, BITS, "10mbit"),
            0.0 if delay is None else quantity("delay", delay, SECONDS, "50ms"),
            0.0 if loss is None else quantity("loss", loss, {"%": 0.01}, "1%"),
        )

    def seconds_of(self, num_bytes: int) -> float:
        """Return the seconds for which these bytes occupy the line."""
        return 0.0 if self.bits_per_second is None else 8 * num_bytes / self.bits_per_second

    def __str__(self) -> str:
        """Return the conditions as text, in the units of `parse`."""
        parts = [] if self.bits_per_second is None else [f"{self.bits_per_second / 1e6:g}mbit"]
        parts += [f"{1e3 * self.delay_seconds:g}ms"] if self.delay_seconds else []
        parts += [f"{100 * self.loss:g}%"] if self.loss else []
        return ", ".join(parts) or "free"


FREE = Conditions()
"""Conditions without limit, delay and loss."""
