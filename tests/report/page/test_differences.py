"""Differences section: one row per variant, paired by seed."""

from __future__ import annotations

import pytest

from fedreuse.report.page.differences import differences
from fedreuse.report.page.shown import Shown
from fedreuse.report.paired import paired_differences

pytestmark = pytest.mark.slow  # the runs behind it


def test_a_row_per_pair_of_variants(shown: Shown) -> None:
    section = differences(Shown((), shown.results))
    (row,) = section.figures[0].data["0"]
    (opposite,) = section.figures[0].data["1"]
    assert opposite["mean"] == -row["mean"]
    _, found = paired_differences(shown.complete)["reuse"]
    assert row["label"] == "reuse - dense <b>"
    assert row["mean"] == pytest.approx(100 * found.mean, rel=1e-5)
    assert len(row["seeds"]) == 5
    assert row["shown"] in section.figures[0].text


def test_one_variant_has_no_differences(shown: Shown) -> None:
    section = differences(Shown((), shown.results[:5]))
    assert (section.key, list(section.figures), list(section.tables)) == ("inference", [], [])
