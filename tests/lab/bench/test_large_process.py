"""Phases: the innermost known function counts, and every phase has its peak."""

from __future__ import annotations

import mmap
import sys
import time
from pathlib import Path

from fedreuse.lab.bench import large_process
from fedreuse.lab.bench.large_process import Phases, phase_of


def test_the_innermost_known_function_of_the_package_counts() -> None:
    seen = []
    code = "def unpack(look):\n    aggregate(look)\ndef aggregate(look):\n    look()\n"
    code += "def helper(look):\n    unpack(look)\n"
    scope: dict[str, object] = {}
    exec(compile(code, str(Path("fedreuse") / "x.py"), "exec"), scope)
    scope["helper"](lambda: seen.append(phase_of(sys._getframe())))  # type: ignore[operator]
    assert seen == ["aggregate"]
    assert phase_of(None) == "other"


def test_peaks_and_seconds_by_phase(monkeypatch) -> None:
    phases = Phases()
    monkeypatch.setattr(large_process, "phase_of", lambda frame: "hold")
    with phases.watched():
        held = mmap.mmap(-1, 60_000_000)  # new pages: the allocator may serve an array from memory that it kept
        held.write(b"1" * len(held))
        for _ in range(20_000):
            if phases.peaks.get("hold", 0) >= 25_000_000:  # the sampler has seen it
                break
            time.sleep(0.001)
    held.close()
    *_, total = phases.rows(model_bytes=10_000_000)
    assert total["phase"] == "all"
    assert total["peak_bytes"] == max(phases.peaks.values()) >= 25_000_000
