"""Devices of the clients: bandwidths, latency and speed, drawn from distributions or read from a trace."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from fedreuse.core.errors import ConfigError, require
from fedreuse.core.fleet import Device, Fleet, Rates
from fedreuse.core.quantities import BITS, FLOPS, SECONDS, quantity
from fedreuse.core.randomness import stream
from fedreuse.core.registry import Registry, parse

__all__ = ["Devices", "Draw", "Profile", "TraceOfDevices", "devices"]

COLUMNS = ("client", "time", "up", "down", "compute")
"""Columns of a trace: client id, second, bits per second up and down, floating-point operations per second."""
_MAX_CLIENTS_NAMED = 5


class Devices(ABC):
    """A rule that gives every client a device. Base class of everything in the registry `devices`."""

    @abstractmethod
    def fleet(self, num_clients: int, seed: int) -> Fleet:
        """Return the devices of all clients.

        Args:
            num_clients: Number of clients.
            seed: Seed of the run.

        Raises:
            ConfigError: If a file does not describe these clients.
        """


devices: Registry[Devices] = Registry("devices", "fedreuse.engine.devices", base=Devices)


@dataclass(frozen=True)
class Draw:
    """A distribution over clients: log-uniform from `low` to `high`, or log-normal around `median`.

    Args:
        low: Lower end, above 0.
        high: Upper end, at least `low`.
        median: Median of the log-normal distribution, above 0.
        sigma: Standard deviation of the logarithm, at least 0.

    Raises:
        ConfigError: Unless exactly one of the two pairs is given.

    Example: `devices: {name: profile, up: {low: 0.5mbit, high: 10mbit}, down: {median: 8mbit, sigma: 0.8}}`.
    """

    low: float | None = None
    high: float | None = None
    median: float | None = None
    sigma: float | None = None

    def __post_init__(self) -> None:
        """Check that one pair is given, in its range."""
        given = {key: number for key, number in vars(self).items() if number is not None}
        if given.keys() not in ({"low", "high"}, {"median", "sigma"}):
            raise ConfigError(f"exactly low and high, or median and sigma expected, got {given}")
        if self.low is not None and self.high is not None:
            require(0 < self.low <= self.high, "low must be above 0 and at most high", given)
        if self.median is not None and self.sigma is not None:
            require(self.median > 0 and self.sigma >= 0, "median must be above 0 and sigma not negative", given)

    def to_plain(self) -> dict[str, float]:
        """Return the pair that is given."""
        return {key: number for key, number in vars(self).items() if number is not None}

    def numbers(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw one number per client."""
        if self.low is not None and self.high is not None:
            return np.exp(rng.uniform(np.log(self.low), np.log(self.high), count))
        assert self.median is not None
        assert self.sigma is not None
        return self.median * np.exp(self.sigma * rng.normal(size=count))


def _parser(units: Mapping[str, float], example: str, *, is_positive: bool) -> Any:
    """Return the parser of a number, a text with a unit, or a distribution."""

    def parse_amount(value: object, where: str) -> float | Draw | None:
        if value is None or isinstance(value, Draw):
            return value
        if isinstance(value, Mapping):
            numbers = {
                key: quantity(f"{where}.{key}", number, units, example) if key != "sigma" else number
                for key, number in value.items()
            }
            drawn: Draw = parse(Draw, numbers, where)
            return drawn
        number = quantity(where, value, units, example)
        if number < 0 or (is_positive and number == 0):
            raise ConfigError(f"{where} must {'be above 0' if is_positive else 'not be negative'}, got {value!r}")
        return number

    return parse_amount


_BANDWIDTH = {"parse": _parser(BITS, "10mbit", is_positive=True)}
_LATENCY = {"parse": _parser(SECONDS, "50ms", is_positive=False)}
_SPEED = {"parse": _parser(FLOPS, "2gflops", is_positive=True)}


@devices.register("profile")
@dataclass(frozen=True)
class Profile(Devices):
    """Devices with constant rates, equal for all clients or drawn once per client and run.

    Each amount is a number, a text with a unit, or a distribution: `{low, high}` (log-uniform) or `{median, sigma}`
    (log-normal).

    Args:
        up: Bandwidth to the server, in bit/s; units bit, kbit, mbit, gbit.
        down: Bandwidth from the server.
        latency: Time that every message takes in addition to its transfer, in seconds; units us, ms, s.
        compute: Speed of training in floating-point operations per second; units mflops, gflops, tflops. None: training
            takes no time.
        offline: Share of each `period` during which a device neither transfers nor computes, in [0, 1). Every client's
            pause begins at a random moment.
        period: Seconds after which pauses repeat, above 0.

    Raises:
        ConfigError: If an amount is no number, has another unit or is out of range.

    Example: `devices: {name: profile, up: {low: 0.5mbit, high: 10mbit}, down: 20mbit, latency: 50ms}`.
    """

    up: float | Draw = field(metadata=_BANDWIDTH)
    down: float | Draw = field(metadata=_BANDWIDTH)
    latency: float | Draw = field(default=0.0, metadata=_LATENCY)
    compute: float | Draw | None = field(default=None, metadata=_SPEED)
    offline: float = 0.0
    period: float = 86400.0

    def __post_init__(self) -> None:
        """Check the ranges of the pause."""
        require(0 <= self.offline < 1, "offline must be in [0, 1)", self.offline)
        require(self.period > 0, "period must be above 0", self.period)

    def fleet(self, num_clients: int, seed: int) -> Fleet:
        """Draw the devices, each amount from a random stream of its own."""

        def numbers(name: str, amount: float | Draw | None) -> np.ndarray:
            if isinstance(amount, Draw):
                return amount.numbers(stream(seed, f"devices {name}"), num_clients)
            return np.full(num_clients, inf if amount is None else amount)

        drawn = {name: numbers(name, getattr(self, name)) for name in ("up", "down", "latency", "compute")}
        begins = stream(seed, "devices offline").uniform(0, self.period, num_clients) if self.offline else None
        return _Drawn(drawn, begins, self.offline * self.period, self.period)


@dataclass(frozen=True, eq=False)
class _Drawn(Fleet):
    """Devices with constant rates and, with `begins`, one pause per period."""

    numbers: Mapping[str, np.ndarray]
    begins: np.ndarray | None
    pause: float
    period: float

    def device(self, client: int) -> Device:
        up, down, latency, compute = (
            float(self.numbers[name][client]) for name in ("up", "down", "latency", "compute")
        )
        return Device(self._rates(up, client), self._rates(down, client), self._rates(compute, client), latency)

    def _rates(self, rate: float, client: int) -> Rates:
        if self.begins is None:
            return Rates((rate,))
        begin = float(self.begins[client])
        end = begin + self.pause
        if end <= self.period:
            return Rates((rate, 0.0, rate), (0.0, begin, end), self.period)
        return Rates((0.0, rate, 0.0), (0.0, end - self.period, begin), self.period)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all numbers."""
        content = sha256(f"{self.pause} {self.period}".encode())
        for name in sorted(self.numbers):
            content.update(self.numbers[name].tobytes())
        content.update(b"" if self.begins is None else self.begins.tobytes())
        return content.hexdigest()


@devices.register("trace")
@dataclass(frozen=True)
class TraceOfDevices(Devices):
    """Devices from a CSV file with the columns client, time, up, down and compute.

    Each row holds from its time on until the client's next row; a rate of 0 is a pause. The first row of every client
    is at time 0. Bandwidths are in bit/s, compute in floating-point operations per second.

    Args:
        file: The path of the file.
        latency: Time that every message takes in addition to its transfer, in seconds; units us, ms, s.
        period: Seconds after which the trace starts again, above its last time. None: the last rows hold for ever.

    Raises:
        ConfigError: When the run starts, if the file has gaps, times that do not ascend, negative numbers or unknown
            clients, or a client that could never answer; the message names the line.

    Example: `devices: {name: trace, file: configs/devices/phones.csv, latency: 40ms, period: 86400}`.
    """

    file: str
    latency: float = field(default=0.0, metadata=_LATENCY)
    period: float | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        require(not isinstance(self.latency, Draw), "latency of a trace must be one number", self.latency)
        require(self.period is None or self.period > 0, "period must be above 0", self.period)

    def fleet(self, num_clients: int, seed: int) -> Fleet:
        """Read the file; nothing is drawn."""
        del seed
        path = Path(self.file).expanduser()
        rows = _read_trace(path, num_clients)
        if self.period is not None:
            last = max(times[-1] for times, *_ in rows)
            if last >= self.period:
                raise ConfigError(
                    f"devices.period is {self.period:g}, but {path} has a row at second {last:g}; give a larger period"
                )
        found = tuple(
            Device(
                Rates(up, times, self.period),
                Rates(down, times, self.period),
                Rates(compute, times, self.period),
                self.latency,
            )
            for times, up, down, compute in rows
        )
        for client, device in enumerate(found):
            _check_answers(path, client, device)
        return _Listed(found)


@dataclass(frozen=True, eq=False)
class _Listed(Fleet):
    """Devices by client id."""

    devices: tuple[Device, ...]

    def device(self, client: int) -> Device:
        return self.devices[client]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all devices."""
        return sha256(repr(self.devices).encode()).hexdigest()


_Series = tuple[tuple[float, ...], ...]


def _read_trace(path: Path, num_clients: int) -> list[_Series]:
    """Return times, up, down and compute of every client."""
    rows: dict[int, list[tuple[float, ...]]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise ConfigError(
                    f"devices.file: {path} must have the columns {', '.join(COLUMNS)} in its first line, "
                    f"got {', '.join(reader.fieldnames or ()) or 'nothing'}"
                )
            for row in reader:
                client, *numbers = _read_row(row, f"devices.file: {path}, line {reader.line_num}", num_clients)
                series = rows.setdefault(int(client), [])
                _check_time(series, numbers[0], f"devices.file: {path}, line {reader.line_num}", int(client))
                series.append(tuple(numbers))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"devices.file: {path} cannot be read ({error}); fix the path or the file") from None
    missing = [client for client in range(num_clients) if client not in rows]
    if missing:
        named = ", ".join(map(str, missing[:_MAX_CLIENTS_NAMED])) + (
            ", ..." if len(missing) > _MAX_CLIENTS_NAMED else ""
        )
        raise ConfigError(
            f"devices.file: {path} has no rows for {len(missing)} of {num_clients} clients ({named}); add them, or set "
            "task.clients to the clients of the trace"
        )
    return [tuple(zip(*rows[client], strict=True)) for client in range(num_clients)]


def _read_row(row: Mapping[Any, Any], where: str, num_clients: int) -> list[float]:
    numbers = []
    for name in COLUMNS:
        try:
            number = float(row[name])
        except (TypeError, ValueError):
            raise ConfigError(f"{where}: {name} must be a number, got {row[name]!r}") from None
        if not 0 <= number < inf:
            raise ConfigError(f"{where}: {name} must not be negative or infinite, got {row[name]}")
        numbers.append(number)
    if None in row:
        raise ConfigError(f"{where}: {len(COLUMNS)} columns expected, got {len(COLUMNS) + len(row[None])}")
    if numbers[0] != int(numbers[0]) or numbers[0] >= num_clients:
        raise ConfigError(
            f"{where}: client {row['client']} is unknown; with task.clients {num_clients}, ids are 0 to "
            f"{num_clients - 1}"
        )
    return numbers


def _check_time(before: list[tuple[float, ...]], time: float, where: str, client: int) -> None:
    if not before and time != 0:
        raise ConfigError(
            f"{where}: the first row of client {client} is at second {time:g}, which leaves a gap; begin at second 0 "
            "(rates of 0 are a pause)"
        )
    if before and time <= before[-1][0]:
        raise ConfigError(
            f"{where}: second {time:g} of client {client} is not after its second {before[-1][0]:g}; sort its rows by "
            "time, each time once"
        )


def _check_answers(path: Path, client: int, device: Device) -> None:
    """Refuse a client that never receives, computes or sends anything."""
    for name in ("down", "compute", "up"):
        rates: Rates = getattr(device, name)
        last = rates.values if rates.period is not None else rates.values[-1:]
        if not any(last):
            raise ConfigError(
                f"devices.file: {path}: client {client} can never answer: its {name} is 0 "
                f"{'always' if rates.period is not None else 'from its last row on'}; remove the client, end its rows "
                "with a rate above 0, or give devices.period"
            )
