"""Peaks over checkpoints, energy where it was readable throughout, and what a real run notes."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.events import RoundDone, Stop
from fedreuse.core.listener import Listener
from fedreuse.runs.launch import run
from fedreuse.runs.resources import energy_of, peaks_of
from tests.tiny import tiny

ROWS = [
    {"held": {"server": 10, "server.cache": 5}, "process_bytes": 100, "joules": 1.5},
    {"held": {"server": 10, "server.cache": 30}, "process_bytes": 120, "joules": 2.0},
    {"held": {"server": 20}, "process_bytes": 120, "joules": 0.5},
]


def test_peaks_are_the_largest_of_each_and_of_all_together() -> None:
    assert peaks_of(ROWS) == {
        "peak.server": 20, "peak.server.cache": 30, "peak.server.all": 40, "peak.process": 120,
    }  # fmt: skip
    assert peaks_of([]) == {}


def test_energy_is_measured_in_all_rounds_or_not_told() -> None:
    assert energy_of(ROWS)["energy"]["processor_joules"] == 4.0
    assert energy_of([*ROWS, {**ROWS[0], "joules": None}]) == {}
    assert energy_of([]) == {}


class StopAfterTwo(Listener):
    """Stops a run after its second round."""

    def round_done(self, event: RoundDone) -> Stop | None:
        return Stop("enough") if event.round_number == 2 else None


@pytest.mark.slow
@pytest.mark.parametrize("store", ["memory", "disk"])
def test_a_run_has_the_peak_of_its_caches_whether_it_was_resumed_or_not(tmp_path: Path, store: str) -> None:
    gate = {"name": "age_only", "max_age": 2}
    parts = {"method": {"name": "dg_fedreuse", "gate": gate}, "server_store": store, "network": {"hidden": 512}}
    whole = run(tiny(**parts), tmp_path / "whole").summary["memory_bytes"]
    assert whole["peak.server.cache"] >= whole["server.cache"] > 0
    assert whole["peak.server.all"] >= whole["server.all"] - whole.get("server.downlink model", 0)
    assert whole["peak.process"] > 10_000_000
    run(tiny(**parts), tmp_path / "halves", listeners=[StopAfterTwo()])
    halves = run(tiny(**parts), tmp_path / "halves", resume=True).summary["memory_bytes"]
    assert {key: size for key, size in halves.items() if key != "peak.process"} == {
        key: size for key, size in whole.items() if key != "peak.process"
    }
