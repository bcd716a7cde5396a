"""Answer section of the page."""

from __future__ import annotations

import pytest

from fedreuse.report.answer import answer, answers, difference_text, verdict
from fedreuse.report.page.headline import headline
from fedreuse.report.page.shown import Shown

pytestmark = pytest.mark.slow  # the runs behind it


def test_the_sentence_of_the_commands_stands_on_the_page_with_three_numbers_per_variant(shown: Shown) -> None:
    section = headline(shown)
    (found,) = answers(shown.complete)
    assert [line.replace("\N{NO-BREAK SPACE}", " ") for line in section.lead] == [answer(found)]
    (card,) = section.cards
    assert (card.variant, card.verdict) == ("reuse", verdict(found))
    assert [value for value, _ in card.numbers] == [
        f"{100 * found.saved:.1f} %", f"{100 * found.score:.1f} %", difference_text(found)[0],
    ]  # fmt: skip
    assert section.tables[0].rows[0][0] == "dense <b>"


def test_each_reference_has_a_view_with_opposite_differences(shown: Shown) -> None:
    section = headline(shown)
    (view,) = section.views
    assert (section.reference, view.reference) == ("dense <b>", "reuse")
    assert [card.variant for card in view.cards] == ["dense <b>"]
    (here,), (there,) = answers(shown.complete), answers(shown.complete, "reuse")
    assert here.difference.mean == -there.difference.mean
    assert (here.sent, here.instead) == (there.instead, there.sent)


def test_without_a_complete_run_it_says_so(shown: Shown) -> None:
    section = headline(Shown((), ()))
    assert (len(section.lead), list(section.tables)) == (1, [])
