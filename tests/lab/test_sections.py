"""Sections that the laboratory adds to a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedreuse.lab.sections import lab_sections, planned_targets
from fedreuse.report.page.page import page_of

pytestmark = pytest.mark.slow  # the runs behind it


def test_sections_of_the_lab_take_the_place_of_their_namesakes(planned: Path) -> None:
    plain, full = page_of([planned]), page_of([planned], sections=lab_sections())
    assert [section.key for section in full.sections] == [section.key for section in plain.sections]
    titles = {section.key: [table.title for table in section.tables] for section in full.sections}
    assert titles["inference"][0].startswith("Claims")


def test_targets_of_a_plan(planned: Path, tmp_path: Path) -> None:
    assert planned_targets([planned, planned, tmp_path]) == [0.3]
