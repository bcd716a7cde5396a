"""Real arrivals of the suites: every request ends once, the dead client never answers, and the order is noted."""

from __future__ import annotations

from fedreuse.testing.cases import Case
from fedreuse.testing.conformance.any_order import DEAD, AnyOrder
from fedreuse.testing.conformance.sessions import play
from fedreuse.testing.quadratic import Setting
from tests.conformance.cases import CASES


def test_the_order_is_noted() -> None:
    case: Case = next(case for case in CASES if case.method == "fedbuff")
    order = AnyOrder(1)
    session = play(case, Setting(executor=order))
    assert [(event.client, event.outcome == "lost") for event in session.ledger.events] == [
        (end.client, end.kind == "lost") for end in order.ends
    ]
    assert {end.kind for end in order.ends if end.client == DEAD} <= {"lost"}
    assert {"lost", "reply"} == {end.kind for end in order.ends}
