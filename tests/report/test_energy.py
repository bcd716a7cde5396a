"""Energy in tables: labelled, by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.accounting.energy import EnergyModel
from fedreuse.report.energy import energy_plain, energy_table
from fedreuse.report.results import read_run
from tests.report.runs import write_run

MODEL = EnergyModel(watts=2, radio="wifi", mbps=8)


def test_a_run_by_hand(tmp_path: Path) -> None:
    result = read_run(write_run(tmp_path / "run"), "v")
    # three clients trained for half a second each; three requests of 110 B, three replies of 30 B
    told = energy_plain(result, MODEL)["energy"]
    assert told["modelled_joules"]["processor"] == 3.0
    assert told["modelled_joules"]["radio up"] == pytest.approx(90e-6 * (0.28317 * 8 + 0.13286), abs=1e-6)
    assert told["measured_joules"] is None
    assert energy_plain(result, None) == {}
    table = energy_table([result, replace(result, measured_joules=12.5)], MODEL)
    assert [row[-1] for row in table.rows] == ["-", "12.5"]
    assert table.rows[0][1] == "3"
    assert all(header.startswith(("modelled J", "measured J")) for header in table.headers[1:])
