"""Devices of the clients in simulated time: bandwidth, latency and computing speed, constant or changing over time.

A request of b_down bytes that is sent at time t, and its reply of b_up bytes after F floating-point operations:

received = end of 8 b_down bits at rate down, begun at t + latency
computed = end of F operations at rate compute, begun at `received`
arrived  = latency + end of 8 b_up bits at rate up, begun at `computed`

With constant rates this is t + 2 latency + 8 b_down / down + F / compute + 8 b_up / up. A rate of zero is a pause: the
transfer or computation goes on when the rate is above zero again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf
from typing import NamedTuple

__all__ = ["Device", "Fleet", "Rates", "Timing"]


@dataclass(frozen=True)
class Rates:
    """A rate over time, constant between the times at which it changes.

    Args:
        values: The rates, at least 0, in units per second.
        times: The second from which each rate holds; ascending, the first is 0.
        period: Seconds after which the rates start again, above the last time; None: the last rate holds for ever.

    Example:
        >>> from fedreuse.core.fleet import Rates
        >>> Rates((100.0,)).end(start=3.0, amount=50)
        3.5
        >>> Rates((10.0, 0.0), times=(0.0, 5.0), period=20.0).end(start=4.0, amount=30)
        22.0
    """

    values: tuple[float, ...]
    times: tuple[float, ...] = (0.0,)
    period: float | None = None

    def end(self, start: float, amount: float) -> float:
        """Return the time at which `amount` units are done if they begin at `start`; infinite if never."""
        if not amount:
            return start
        if len(self.values) == 1:
            return start + amount / self.values[0] if self.values[0] else inf
        if self.period is not None:
            if not self._per_period:
                return inf
            whole = ceil(amount / self._per_period) - 1  # the last period is walked through: it may end in a pause
            start, amount = start + whole * self.period, amount - whole * self._per_period
        return self._walk(start, amount)

    @property
    def usual(self) -> float:
        """The mean over a period without its pauses; without a period the last rate."""
        if self.period is None:
            return self.values[-1]
        ends = (*self.times[1:], self.period)
        spans = zip(self.values, self.times, ends, strict=True)
        return self._per_period / sum(end - begin for value, begin, end in spans if value)

    @cached_property
    def _per_period(self) -> float:
        """Units of one period; 0 without a period."""
        if self.period is None:
            return 0.0
        ends = (*self.times[1:], self.period)
        return sum(value * (end - begin) for value, begin, end in zip(self.values, self.times, ends, strict=True))

    def _walk(self, start: float, amount: float) -> float:
        """Go through the intervals of constant rate."""
        base = 0.0 if self.period is None else start // self.period * self.period
        at = bisect_right(self.times, start - base) - 1
        while amount > 0:
            is_last = at + 1 == len(self.times)
            if is_last and self.period is None:
                return start + amount / self.values[at] if self.values[at] else inf
            end = base + (self.times[at + 1] if not is_last else self.period or inf)
            done = self.values[at] * (end - start)
            if done >= amount:
                return start + amount / self.values[at]
            amount, start = amount - done, end
            base, at = (end, 0) if is_last else (base, at + 1)
        return start


class Timing(NamedTuple):
    """The times of one request: received by the client, computed, and its reply arrived at the server."""

    received: float
    computed: float
    arrived: float


@dataclass(frozen=True)
class Device:
    """A client's device and its line.

    Args:
        up: Bits per second to the server.
        down: Bits per second from the server.
        compute: Floating-point operations per second.
        latency: Seconds that every message takes in addition to its transfer, at least 0.

    Example:
        >>> from fedreuse.core.fleet import Device, Rates
        >>> device = Device(up=Rates((1e6,)), down=Rates((8e6,)), compute=Rates((1e9,)), latency=0.05)
        >>> device.timing(0.0, down_bytes=1_000_000, flops=500_000_000, up_bytes=125_000).arrived
        2.6
    """

    up: Rates
    down: Rates
    compute: Rates
    latency: float = 0.0

    def timing(self, sent: float, down_bytes: int, flops: int, up_bytes: int) -> Timing:
        """Return the times of a request that the server sends at `sent`."""
        received = self.down.end(sent + self.latency, 8 * down_bytes)
        computed = self.compute.end(received, flops)
        return Timing(received, computed, self.up.end(computed, 8 * up_bytes) + self.latency)


class Fleet(ABC):
    """The devices of all clients, the same for the same configuration and seed."""

    @abstractmethod
    def device(self, client: int) -> Device:
        """Return the device of a client."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of all devices."""
