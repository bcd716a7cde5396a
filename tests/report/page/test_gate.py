"""Gate: events in columns, counts by reason and age, the threshold of the configuration, and a kept gate study."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from fedreuse.methods.gates.proxy import Proxy
from fedreuse.report.page import gate as module
from fedreuse.report.page.gate import gate
from fedreuse.report.page.shown import Shown

pytestmark = pytest.mark.slow  # the runs behind it


def test_columns_and_counts_are_those_of_the_events(shown: Shown) -> None:
    section = gate(shown)
    run = section.figures[0].data[0]
    result = shown.results[run["run"]]
    assert result.variant == "reuse"
    events = result.history.events
    assert run["rounds"] == [event.round_number for event in events]
    assert run["threshold"][4] == pytest.approx(Proxy().threshold_in(5), rel=1e-5)
    assert sum(map(sum, run["reasons"].values())) == len(events)
    reused = Counter(event.age for event in events if event.outcome == "reused")
    assert dict(run["ages"]) == reused
    assert reused, "somebody was reused, or this test shows nothing"
    table = section.tables[0]
    assert table.rows[0][0] == "reuse, seed 11"
    assert table.rows[0][table.headers.index("reused")] == str(reused.total())


@pytest.mark.parametrize(
    ("named", "wanted"),
    [({"name": "drift", "threshold": 0.8}, [0.8, 0.8, 0.8]), ("age_only", None), (None, None)],
)
def test_a_threshold_may_be_one_number(named: object, wanted: list[float] | None) -> None:
    result = SimpleNamespace(config={"method": {"gate": named}}, rounds=3)
    assert module._threshold(result) == wanted


def test_a_study_too_large_for_the_page_shows_the_first_seeds(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_EVENTS", 2 * len(shown.results[5].history.events))
    section = gate(shown)
    assert [shown.results[run["run"]].seed for run in section.figures[0].data] == [11, 12]
    assert "3 more" in section.lead[0]
    assert len(section.tables[0].rows) == 5


def test_without_a_gate_there_is_a_sentence(shown: Shown) -> None:
    section = gate(Shown(shown.places, shown.results[:5]))
    assert (section.figures, len(section.lead)) == ((), 1)
