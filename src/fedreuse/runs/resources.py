"""Resources of a run, noted at every checkpoint: memory of the server and the process, processor energy (RAPL)."""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["ROWS", "PackageEnergy", "Resources", "energy_of", "peaks_of"]

ROWS = "resources"
"""Kind of the journal's rows."""
_KIB = 1024
_POWERCAP = Path("/sys/class/powercap")
"""Folder in which Linux shows the energy counters of processors (RAPL)."""


class PackageEnergy:
    """Energy counter of all processor packages; it includes everything else that runs on them."""

    def __init__(self, folder: Path = _POWERCAP) -> None:
        """Start counting here."""
        # `intel-rapl:0` is a package, and includes its parts such as `intel-rapl:0:1`
        self._counters = sorted(path for path in folder.glob("*-rapl:*") if path.name.count(":") == 1)
        self._last = self._read()

    def take(self) -> float | None:
        """Return the joules since the last call; None if a counter cannot be read."""
        before, self._last = self._last, self._read()
        if before is None or self._last is None:
            return None
        return sum(
            (now - then if now >= then else now + self._range(counter) - then) / 1e6
            for counter, then, now in zip(self._counters, before, self._last, strict=True)
        )

    def _read(self) -> list[int] | None:
        try:
            return [int((counter / "energy_uj").read_text()) for counter in self._counters] or None
        except (OSError, ValueError):
            return None

    def _range(self, counter: Path) -> int:
        """Return the value at which a counter starts again from 0."""
        return int((counter / "max_energy_range_uj").read_text())


class Resources:
    """Measurements of memory and energy, as rows of the journal."""

    def __init__(self, energy: PackageEnergy | None = None) -> None:
        """Start counting here."""
        self._energy = PackageEnergy() if energy is None else energy

    def note(self, held: Mapping[str, int]) -> dict[str, Any]:
        """Return the server's bytes by place, the peak size of the process, and the joules since the last call."""
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB
        return {"held": dict(held), "process_bytes": largest, "joules": self._energy.take()}


def peaks_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the peaks over all rows: of the server by place and in total, and of the process."""
    if not rows:
        return {}
    places = sorted({place for row in rows for place in row["held"]})
    peaks = {f"peak.{place}": max(row["held"].get(place, 0) for row in rows) for place in places}
    total = max(sum(row["held"].values()) for row in rows)
    return {**peaks, "peak.server.all": total, "peak.process": max(row["process_bytes"] for row in rows)}


def energy_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the joules of all rounds; empty unless every row has them."""
    joules = [row["joules"] for row in rows]
    if not joules or any(number is None for number in joules):
        return {}
    return {"energy": {"processor_joules": sum(joules), "how": "measured (RAPL, all packages of the machine)"}}
