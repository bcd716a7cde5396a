"""Methods with memory under attack: what lives on, what bounds it, and who is forgotten."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedreuse.compression.links.choice import choose_links, parse_wanted
from fedreuse.core.method import Method, methods
from fedreuse.core.tensors import is_equal
from fedreuse.engine.faults import Listed, ListedFault
from fedreuse.methods.aggregators.krum import MultiKrum
from fedreuse.methods.dg_fedreuse import DgFedReuse
from fedreuse.methods.gates.proxy import Proxy
from fedreuse.methods.scaffold import Scaffold
from fedreuse.robustness.attacks.hostile import under_attack
from fedreuse.robustness.attacks.scaled import Scaled
from fedreuse.testing.quadratic import Session, Setting
from tests.robustness.attacks.played import FEDERATION, bad_of, play

ATTACK = Scaled(0.1, factor=-50.0, score=0.0)
(BAD,) = bad_of(ATTACK)
GONE = Listed(tuple(ListedFault(number, BAD, "lost") for number in range(2, 8)))


def attacked(name: str, max_norm: float | None = None, **options: Any) -> Session:
    method = Method(*methods.parse({"name": name, **options}, "method").halves("dense"), max_norm=max_norm)
    return Session(FEDERATION, under_attack(method, ATTACK, frozenset({BAD})), Setting(cohort=10, faults=GONE))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mifa", "fedvarp", "fedstale"])
def test_a_poisoned_entry_of_server_memory_stays_until_its_client_answers_and_the_bound_keeps_it_out(name: str) -> None:
    free = attacked(name).advance(1)
    poison = free.record.state.memory[BAD]
    free.advance(5)
    assert is_equal(free.record.state.memory[BAD], poison)  # the client sent one lie and was never heard again
    norm = float(np.linalg.norm(poison.values))
    bounded = attacked(name, max_norm=norm / 10).advance(6)
    assert BAD not in bounded.record.state.memory
    entries = [np.linalg.norm(entry.values) for entry in bounded.record.state.memory.values()]
    assert max(entries) <= norm / 10


def test_dg_fedreuse_lets_go_of_a_poisoned_update_at_the_age_limit_and_with_a_rule_at_once() -> None:
    config = DgFedReuse(gate=Proxy(max_age=3, quota=0.0), mu=0.0)
    for rule, held in ((None, [True, True, False]), (MultiKrum(bad=0.1), [False, False, False])):
        server, client = DgFedReuse(gate=config.gate, mu=0.0, aggregate=rule).halves("dense")
        method = under_attack(Method(server, client), ATTACK, frozenset({BAD}))
        session = Session(FEDERATION, method, Setting(cohort=10, faults=GONE))
        assert [BAD in session.advance(1).record.state.cache for _ in range(3)] == held


def test_a_rule_judges_scaffolds_updates_and_not_its_controls() -> None:
    rule = Scaffold(aggregate=MultiKrum(bad=0.1))
    clean, spoilt = play(rule, rounds=3), play(rule, ATTACK, rounds=3)
    reasons = [event.reason for event in spoilt.ledger.events if event.client == BAD]
    assert reasons == ["left out by multi_krum"] * 3
    moved = np.linalg.norm(spoilt.record.state.control.values - clean.record.state.control.values)
    bounded = play(rule, ATTACK, rounds=3, max_norm=float(moved))
    held = np.linalg.norm(bounded.record.state.control.values - clean.record.state.control.values)
    assert held < moved / 5  # what max_norm refuses moves no control


def test_a_lie_needs_several_rounds_to_enter_ef21s_estimate_and_the_rule_sees_the_estimate() -> None:
    wanted = {"update": parse_wanted({"name": "ef21", "codec": {"name": "top_k", "ratio": 0.1}}, "uplink.update")}
    config, uplink = choose_links(methods.parse({"name": "averaging"}, "method"), wanted, "uplink")
    method = under_attack(Method(*config.halves("dense"), uplink), ATTACK, frozenset({BAD}))
    session = Session(FEDERATION, method, Setting(cohort=10)).advance(1)

    def entered() -> int:
        estimate = session.record.contacts[BAD].uplink["update"]
        return int(np.count_nonzero(np.abs(getattr(estimate, "values", estimate)) > 1))

    first = entered()
    session.advance(3)
    assert first < entered()
