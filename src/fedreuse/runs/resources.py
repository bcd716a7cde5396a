"""What a run took of its machine, noted at every checkpoint: memory of the server and the process, processor energy."""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["ROWS", "PackageEnergy", "Resources", "energy_of", "peaks_of"]

ROWS = "resources"
"""The kind of the journal's rows."""
_KIB = 1024
_POWERCAP = Path("/sys/class/powercap")
"""Folder in which Linux shows the energy counters of processors (RAPL)."""


class PackageEnergy:
    """Counts joules of all packages, everything that runs on them included; None where nothing can be read."""

    def __init__(self, folder: Path = _POWERCAP) -> None:
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


class Resources:
    """Takes a note for the journal whenever it is asked."""

    def __init__(self, energy: PackageEnergy | None = None) -> None:
        """Start counting here."""
        self._energy = PackageEnergy() if energy is None else energy

    def note(self, held: Mapping[str, int]) -> dict[str, Any]:
        """Bytes that the server holds by place, the largest size of the process so far, joules since the last note."""
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB
        return {"held": dict(held), "process_bytes": largest, "joules": self._energy.take()}


def peaks_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The largest of all notes: of the server by place and in all, and of the process that ran."""
    if not rows:
        return {}
    places = sorted({place for row in rows for place in row["held"]})
    peaks = {f"peak.{place}": max(row["held"].get(place, 0) for row in rows) for place in places}
    total = max(sum(row["held"].values()) for row in rows)
    return {**peaks, "peak.server.all": total, "peak.process": max(row["process_bytes"] for row in rows)}


def energy_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Measured joules of all rounds; empty where they could not be read throughout."""
    joules = [row["joules"] for row in rows]
    if not joules or any(number is None for number in joules):
        return {}
    return {"energy": {"processor_joules": sum(joules), "how": "measured (RAPL, all packages of the machine)"}}
