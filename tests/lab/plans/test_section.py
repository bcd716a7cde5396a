"""Inference: rows of the forest are the answers of the plan, or the paired differences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fedreuse.lab.plans.confirmation import confirm
from fedreuse.lab.plans.section import inference
from fedreuse.report.page.shown import Shown

pytestmark = pytest.mark.slow  # the runs behind it


def test_claims_with_their_margins(shown: Shown, planned: Path) -> None:
    section = inference(shown)
    rows, answers = section.figures[0].data, confirm(planned).answers
    assert [row["mean"] for row in rows] == pytest.approx([100 * one.assessment.mean for one in answers], rel=1e-5)
    assert [row["margins"] for row in rows] == [[-20], [-30, 30]]
    assert [row["verdict"] for row in rows] == [one.verdict for one in answers]
    assert len(rows[0]["seeds"]) == 5
    assert section.tables[0].title.startswith("Claims")


def test_a_plan_with_missing_runs_waits(shown: Shown) -> None:
    going = Shown(shown.places, (replace(shown.results[0], is_complete=False), *shown.results[1:]))
    section = inference(going)
    assert (section.figures, section.tables) == ([], [])
    assert "as a whole" in section.lead[0]


def test_without_a_plan_differences_are_shown_and_nothing_is_decided(shown: Shown) -> None:
    section = inference(Shown((), shown.results))
    assert section.figures[0].data["0"][0]["label"] == "reuse - dense <b>"
    assert "nothing is decided" in section.lead[0]
    assert not inference(Shown((), shown.results[:5])).figures
