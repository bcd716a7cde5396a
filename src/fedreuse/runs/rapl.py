"""What the processor packages of this machine consume, where Linux lets us read it (RAPL)."""

from __future__ import annotations

from pathlib import Path

__all__ = ["PackageEnergy"]

_FOLDER = Path("/sys/class/powercap")


class PackageEnergy:
    """Counts joules of all packages, everything that runs on them included; None where nothing can be read."""

    def __init__(self, folder: Path = _FOLDER) -> None:
        """Start counting here."""
        # `intel-rapl:0` is a package, `intel-rapl:0:1` a part of one that is in it already
        self._counters = sorted(place for place in folder.glob("*-rapl:*") if place.name.count(":") == 1)
        self._last = self._read()

    def take(self) -> float | None:
        """Joules since the last call."""
        before, self._last = self._last, self._read()
        if before is None or self._last is None:
            return None
        return sum(
            (now - then if now >= then else now + self._range(place) - then) / 1e6
            for place, then, now in zip(self._counters, before, self._last, strict=True)
        )

    def _read(self) -> list[int] | None:
        try:
            return [int((place / "energy_uj").read_text()) for place in self._counters] or None
        except (OSError, ValueError):
            return None

    def _range(self, place: Path) -> int:
        """Where a counter starts over."""
        return int((place / "max_energy_range_uj").read_text())
