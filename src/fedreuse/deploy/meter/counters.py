"""Byte counters of all lines in one small file: the forwarding process adds to them, any process may read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedreuse.accounting.ledger import Measured
from fedreuse.core.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["LEVELS", "Counters", "Direction", "Level", "MeterReader"]

Direction = Literal["up", "down"]
Level = Literal["transport", "interface"]
LEVELS: tuple[Level, ...] = ("transport", "interface")
"""`transport` is TCP payload; `interface` is whole packets with headers, acknowledgements and retransmissions."""
_DIRECTIONS: tuple[Direction, ...] = ("up", "down")
_MAGIC = 0x66656D31
_CELLS = len(_DIRECTIONS) * len(LEVELS)


class Counters:
    """Bytes by line, direction and level; without locks: each cell has one writer, and 8-byte writes are atomic."""

    def __init__(self, path: Path, cells: np.ndarray, levels: tuple[Level, ...]) -> None:
        """Wrap the cells of a file; use `create` or `open`."""
        self.path = path
        self.levels = levels
        self._cells = cells

    @classmethod
    def create(cls, path: Path, num_lines: int, levels: Sequence[Level]) -> Counters:
        """Create a file of zeros for the levels that are counted."""
        words = np.memmap(path, np.int64, "w+", shape=(2 + num_lines * _CELLS,))
        words[:2] = _MAGIC, sum(1 << LEVELS.index(level) for level in levels)
        words.flush()
        return cls._over(path, words)

    @classmethod
    def open(cls, path: Path) -> Counters:
        """Open the counters that another process writes.

        Raises:
            RunError: The file is missing, or holds something else.
        """
        try:
            words = np.memmap(path, np.int64, "r")
        except (OSError, ValueError) as error:
            raise RunError(f"{path}: the meter's counters cannot be read ({error})") from None
        if len(words) < 2 or words[0] != _MAGIC or (len(words) - 2) % _CELLS:
            raise RunError(f"{path} does not hold the counters of a meter")
        return cls._over(path, words)

    @classmethod
    def _over(cls, path: Path, words: np.ndarray) -> Counters:
        levels = tuple(level for bit, level in enumerate(LEVELS) if int(words[1]) >> bit & 1)
        return cls(path, words[2:].reshape(-1, len(_DIRECTIONS), len(LEVELS)), levels)

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self._cells)

    def add(self, line: int, direction: Direction, level: Level, num_bytes: int) -> None:
        """Add to the bytes of a line."""
        self._cells[line, _DIRECTIONS.index(direction), LEVELS.index(level)] += num_bytes

    def read(self, line: int, direction: Direction) -> dict[str, int]:
        """Return the bytes so far, by level."""
        row = self._cells[line, _DIRECTIONS.index(direction)]
        return {level: int(row[LEVELS.index(level)]) for level in self.levels}


class MeterReader:
    """Bytes since the last call, for the ledger; node and client have the same number."""

    def __init__(self, counters: Path) -> None:
        """Start now: earlier bytes belong to no exchange."""
        self._counters = Counters.open(counters)
        self._before = self._read()

    def __call__(self) -> Iterator[Measured]:
        """Yield one measurement per client and direction."""
        before, self._before = self._before, self._read()
        for (client, way), seen in self._before.items():
            yield Measured(client, way, {level: seen[level] - before[client, way][level] for level in seen})

    def _read(self) -> dict[tuple[int, Direction], dict[str, int]]:
        return {
            (line, way): self._counters.read(line, way) for line in range(len(self._counters)) for way in _DIRECTIONS
        }
