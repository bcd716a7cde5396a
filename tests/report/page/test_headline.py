"""Answer section of the page."""

from __future__ import annotations

import pytest

from fedreuse.report.answer import answer, answers
from fedreuse.report.page.headline import headline
from fedreuse.report.page.shown import Shown

pytestmark = pytest.mark.slow  # the runs behind it


def test_the_sentences_of_the_commands_stand_on_the_page(shown: Shown) -> None:
    section = headline(shown)
    assert list(section.lead) == [answer(found) for found in answers(shown.complete)]
    assert section.tables[0].rows[0][0] == "dense <b>"


def test_without_a_complete_run_it_says_so(shown: Shown) -> None:
    section = headline(Shown((), ()))
    assert (len(section.lead), list(section.tables)) == (1, [])
