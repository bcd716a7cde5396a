"""An example trace of devices, drawn around published means of bandwidth.

Means: Speedtest Global Index (Ookla), worldwide, September 2020. Mobile: 35.96 Mbit/s down, 11.22 Mbit/s up, 40 ms;
fixed: 85.73 Mbit/s down, 45.74 Mbit/s up, 21 ms. Everything else is an assumption: two of three devices are mobile;
bandwidths are log-normal over devices with these means (sigma 0.8), and halve from 18 to 23 h; computing speed is
log-uniform from 1 to 20 GFLOP/s; a mobile device is offline for six hours that begin at a random full hour.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np

from fedreuse.core.errors import require
from fedreuse.core.files import write_whole
from fedreuse.core.randomness import stream
from fedreuse.engine.devices import COLUMNS

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["DAY", "SOURCE", "example_rows", "write_example"]

SOURCE = "Speedtest Global Index (Ookla), worldwide means, September 2020"
DAY = 86400
_HOUR = 3600
_MOBILE, _FIXED = (11.22e6, 35.96e6), (45.74e6, 85.73e6)
"""Mean bandwidth up and down in bit/s."""
_SIGMA = 0.8
_SHARE_OF_MOBILE = 2 / 3
_BUSY_HOURS = range(18, 23)
_OFFLINE_HOURS = 6
_SLOWEST, _FASTEST = 1e9, 20e9


def example_rows(num_clients: int, seed: int = 1) -> list[tuple[int, int, int, int, int]]:
    """Return the rows of a trace of one day, in the order of `COLUMNS`; equal hours in a row are one entry."""
    require(num_clients >= 1, "clients must be at least 1", num_clients)
    rows = []
    for client in range(num_clients):
        rng = stream(seed, "example trace", client=client)
        is_mobile = rng.random() < _SHARE_OF_MOBILE
        # a log-normal variable with sigma s has mean median * exp(s^2 / 2)
        up, down = (mean * np.exp(_SIGMA * rng.normal() - _SIGMA**2 / 2) for mean in (_MOBILE if is_mobile else _FIXED))
        compute = np.exp(rng.uniform(np.log(_SLOWEST), np.log(_FASTEST)))
        begin = int(rng.integers(24))
        off = {(begin + hour) % 24 for hour in range(_OFFLINE_HOURS)} if is_mobile else set()
        last: tuple[int, ...] | None = None
        for hour in range(24):
            load = 0.5 if hour in _BUSY_HOURS else 1.0
            rates = (0, 0, 0) if hour in off else (round(up * load), round(down * load), round(compute))
            if rates != last:
                rows.append((client, hour * _HOUR, *rates))
            last = rates
    return rows


def write_example(path: Path, num_clients: int, seed: int = 1) -> int:
    """Write the trace as CSV and return its number of rows."""
    rows = example_rows(num_clients, seed)
    lines: list[str] = []
    writer = csv.writer(_Lines(lines), lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(lines).encode())
    return len(rows)


class _Lines:
    """Target of a CSV writer that collects lines."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def write(self, line: str) -> None:
        self._lines.append(line)
