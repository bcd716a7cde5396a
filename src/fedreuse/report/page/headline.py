"""Answer section, the first of the page: one or two sentences per variant, and the table of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedreuse.report.answer import answer, answer_table, answers
from fedreuse.report.page.section import Section

if TYPE_CHECKING:
    from fedreuse.report.page.shown import Shown

__all__ = ["headline"]


def headline(shown: Shown) -> Section:
    """Return bytes, scores and differences of the complete runs."""
    table = answer_table(shown.complete)
    if table is None:
        return Section("answer", "Answer", ["No run is complete yet."])
    return Section("answer", "Answer", [answer(found) for found in answers(shown.complete)], (), [table])
