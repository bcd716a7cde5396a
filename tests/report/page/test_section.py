"""Parts of a page: numbers that a figure can take."""

from __future__ import annotations

from fedreuse.report.page.section import Section, short, shorts


def test_numbers_are_short_and_finite() -> None:
    assert shorts([1.23456789, 2.0, float("nan"), None, 1e9]) == [1.23457, 2, None, None, 1_000_000_000]
    assert isinstance(short(2.0), int)


def test_a_section_without_anything_is_empty() -> None:
    assert Section("a", "A").is_empty
    assert not Section("a", "A", ["something"]).is_empty
