"""Peaks over checkpoints, energy where it was readable throughout, and what a real run notes."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.core.events import RoundDone, Stop
from fedreuse.core.listener import Listener
from fedreuse.runs.launch import run
from fedreuse.runs.resources import PackageEnergy, energy_of, peaks_of
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


def write(folder: Path, **microjoules: int) -> None:
    for name, number in microjoules.items():
        place = folder / name.replace("_", ":").replace("rapl:", "intel-rapl:", 1)
        place.mkdir(parents=True, exist_ok=True)
        (place / "energy_uj").write_text(f"{number}\n")
        (place / "max_energy_range_uj").write_text("10000000\n")


def test_joules_of_all_packages_since_the_last_look(tmp_path: Path) -> None:
    write(tmp_path, rapl_0=1_000_000, rapl_1=9_000_000, rapl_0_0=500_000)
    energy = PackageEnergy(tmp_path)
    write(tmp_path, rapl_0=3_500_000, rapl_1=1_000_000, rapl_0_0=600_000)  # the second one started over
    assert energy.take() == 2.5 + 2.0
    assert energy.take() == 0.0


def test_where_nothing_can_be_read_there_is_no_number(tmp_path: Path) -> None:
    assert PackageEnergy(tmp_path / "absent").take() is None
    write(tmp_path, rapl_0=1)
    energy = PackageEnergy(tmp_path)
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("no number")
    assert energy.take() is None
