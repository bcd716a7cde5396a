"""Overview: what was compared, the plan's hash, the state of every run, and the openings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.lab.plans.record import read_plan
from fedreuse.report.page.overview import overview
from fedreuse.report.page.shown import Shown

pytestmark = pytest.mark.slow  # the runs behind it


def test_what_a_reader_must_know_first(shown: Shown, planned: Path) -> None:
    section = overview(shown)
    text = "\n".join(section.lead)
    record = read_plan(planned)
    assert record is not None
    assert record.current.digest in text
    assert "10 runs of 2 variants: cnn on synthetic; seeds 11, 12, 13, 14, 15." in text
    assert "synthetic 10 times (2 configurations)" in text
    assert "digests compared" in text
    runs = section.tables[-1]
    assert [row[3] for row in runs.rows] == ["complete"] * 10


def test_unfinished_runs_are_counted(shown: Shown) -> None:
    going = Shown(shown.places, (replace(shown.results[0], is_complete=False), *shown.results[1:]))
    assert "1 not complete." in overview(going).lead[0]
