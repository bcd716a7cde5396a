"""What a page is about: variants with their seeds, and what tells them apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedreuse.report.page.shown import Shown

pytestmark = pytest.mark.slow  # the runs behind it


def test_variants_runs_and_settings(shown: Shown) -> None:
    assert shown.names == ["dense <b>", "reuse"]
    assert [len(variant.results) for variant in shown.variants] == [5, 5]
    assert (shown.metric, shown.factor, shown.unit) == ("accuracy", 100, " %")
    plain = shown.plain()
    assert "method.name dg_fedreuse" in plain["variants"][1]["settings"]
    assert "uplink" not in plain["variants"][0]["settings"]
    assert [run["variant"] for run in plain["runs"]] == [0] * 5 + [1] * 5
    assert shown.place_of("reuse") == 1


def test_a_direction_that_a_boundary_does_not_count_is_not_offered(shown: Shown) -> None:
    pairs = list(shown.pairs())
    assert ("update_fields", "up") in pairs
    assert ("update_fields", "down") not in pairs
    assert [direction for name, direction in pairs if name == "messages"] == ["up", "down", "both"]


def test_a_run_that_goes_on_is_begun_and_not_complete(shown: Shown) -> None:
    first = replace(shown.results[0], is_complete=False)
    going = Shown(shown.places, (first, *shown.results[1:]))
    assert [len(variant.results) for variant in going.variants] == [4, 5]
    assert [len(variant.results) for variant in going.begun] == [5, 5]
