"""Cost of the clock: it is timed inside a run, the run is unchanged, and nothing stays patched."""

from __future__ import annotations

from benchmarks.clock import measured
from fedreuse.engine.clock import Clock
from tests.tiny import plain


def test_the_clock_is_timed_and_restored() -> None:
    before = Clock.judge, Clock.arrival
    lines = {"name": "profile", "up": "1mbit", "down": "1mbit"}
    found = measured({**plain(), "devices": lines})
    assert 0 < found["clock_seconds"] < found["seconds"]
    assert (Clock.judge, Clock.arrival) == before
