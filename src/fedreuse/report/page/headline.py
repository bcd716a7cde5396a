"""Answer section, the first of the page: a sentence, three numbers per variant, and the table of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedreuse.report.answer import (
    answer,
    answer_table,
    answers,
    difference_text,
    score_text,
    size_text,
    verdict,
)
from fedreuse.report.page.section import Card, Section, View

if TYPE_CHECKING:
    from fedreuse.report.answer import Answer
    from fedreuse.report.page.shown import Shown

__all__ = ["headline"]


def headline(shown: Shown) -> Section:
    """Return bytes, scores and differences of the complete runs, against every reference that can be chosen."""
    if not shown.variants:
        return Section("answer", "Answer", ["No run is complete yet."], is_open=True)
    views = [_view(shown, name) for name in shown.references] or [_view(shown, None)]
    first = views[0]
    return Section(
        "answer", "Answer", first.lead, (), first.tables, cards=first.cards, reference=first.reference,
        views=views[1:], is_open=True,
    )  # fmt: skip


def _view(shown: Shown, reference: str | None) -> View:
    found = answers(shown.complete, reference)
    table = answer_table(shown.complete, reference)
    counted = [one for one in found if one.sent is not None]
    cheapest = min(counted, key=lambda one: one.sent or 0.0) if counted else found[0]
    return View(
        reference or "",
        [answer(cheapest).replace(" %", "\N{NO-BREAK SPACE}%")],
        [_card(one) for one in found],
        [table] if table else [],
    )


def _card(found: Answer) -> Card:
    numbers = []
    if found.sent is not None and found.instead and found.saved is not None:
        sizes = f"{size_text(found.sent)} instead of {size_text(found.instead)}"
        numbers.append((f"{100 * found.saved:.1f} %", f"saved, both ways: {sizes}"))
    if found.score is not None:
        name = f"{found.split} {found.metric.replace('_', ' ')}"
        other = "" if found.reference_score is None else f", reference {score_text(found.reference_score, found)}"
        numbers.append((score_text(found.score, found), name + other))
    if found.reference is not None:
        difference, interval = difference_text(found)
        numbers.append((difference, f"{'points of ' if found.is_share else ''}difference ({interval})"))
    else:
        numbers.append((str(found.num_seeds), "seed" if found.num_seeds == 1 else "seeds"))
    return Card(found.variant, numbers, verdict(found))
