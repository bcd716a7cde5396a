"""One hostile client of ten, through real rounds: the impossible is refused, what is only large is for the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from fedreuse.core.message import Message
from fedreuse.core.method import ClientHalf, Method, MethodConfig
from fedreuse.core.tensors import Tensors, is_equal, scale
from fedreuse.engine.faults import Listed, ListedFault
from fedreuse.methods.aggregators.aggregator import Aggregator
from fedreuse.methods.aggregators.bucketing import Bucketing
from fedreuse.methods.aggregators.bulyan import Bulyan
from fedreuse.methods.aggregators.centred_clipping import CentredClipping
from fedreuse.methods.aggregators.clipping import Clipping
from fedreuse.methods.aggregators.geometric_median import GeometricMedian
from fedreuse.methods.aggregators.krum import Krum, MultiKrum
from fedreuse.methods.aggregators.median import Median
from fedreuse.methods.aggregators.nearest_neighbour_mixing import NearestNeighbourMixing
from fedreuse.methods.aggregators.trimmed_mean import TrimmedMean
from fedreuse.methods.averaging import Averaging
from fedreuse.methods.dg_fedreuse import DgFedReuse
from fedreuse.methods.gates.proxy import Proxy
from fedreuse.methods.scaffold import Scaffold
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting

HOSTILE = 3
FEDERATION = QuadraticFederation.draw(10)
Lie = Callable[[Message], Message]
RULES = [
    Clipping(), Median(), TrimmedMean(), GeometricMedian(), Krum(), MultiKrum(), CentredClipping(), Bulyan(),
    NearestNeighbourMixing(), Bucketing(),
]  # fmt: skip


@dataclass(frozen=True)
class Liar(ClientHalf[Any]):
    """Every client's half, but what one client says is changed on its way out."""

    honest: ClientHalf[Any]
    lie: Lie

    @property
    def wants_delivered(self) -> bool:
        """As the honest half."""
        return self.honest.wants_delivered

    def init(self) -> Any:
        """As the honest half."""
        return self.honest.init()

    def answer(self, request: Message, state: Any, trainer: Any) -> tuple[Message, Any]:
        """The truth, or of one client a lie."""
        reply, after = self.honest.answer(request, state, trainer)
        return (self.lie(reply) if trainer.client == HOSTILE else reply), after

    def settle(self, state: Any, delivered: Message) -> Any:
        """As the honest half."""
        return self.honest.settle(state, delivered)


def play(config: MethodConfig, lie: Lie = lambda reply: reply, rounds: int = 5) -> Session:
    server, client = config.halves("dense")
    session = Session(FEDERATION, Method(server, Liar(client, lie)), Setting(cohort=10))
    return session.advance(rounds)


def scaled(factor: float) -> Lie:
    def lie(reply: Message) -> Message:
        if "update" not in reply.groups:
            return replace(reply, values={"score": 0.0})  # never asked to train again
        return replace(reply, groups={**reply.groups, "update": scale(reply.groups["update"], factor)})

    return lie


def one_number(group: str, number: float) -> Lie:
    def lie(reply: Message) -> Message:
        values = reply.groups[group].values.copy()
        values[-1] = number
        return replace(reply, groups={**reply.groups, group: Tensors(reply.groups[group].schema, values)})

    return lie


def apart(one: Session, other: Session) -> float:
    return float(np.linalg.norm(one.model.weights.values - other.model.weights.values))


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_every_rule_withstands_a_scaled_update(rule: Aggregator) -> None:
    clean = play(Averaging())
    spoilt = apart(play(Averaging(), scaled(-20.0)), clean)
    assert apart(play(Averaging(aggregate=rule), scaled(-20.0)), clean) < spoilt / 50


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_every_rule_sees_what_is_reused_so_that_a_poisoned_cache_does_not_win(rule: Aggregator) -> None:
    config = DgFedReuse(gate=Proxy(quota=0.0), mu=0.0)
    clean, poisoned = play(config), play(config, scaled(-50.0))
    fates = [event.outcome for event in poisoned.ledger.events if event.client == HOSTILE]
    assert fates == ["fresh", "reused", "reused", "reused", "fresh"]  # the gate's age limit bounds the free ride
    guarded = play(replace(config, aggregate=rule), scaled(-50.0))
    assert apart(guarded, clean) < apart(poisoned, clean) / 50
    if isinstance(rule, Krum | MultiKrum):  # found out, and forgotten
        assert {event.outcome for event in guarded.ledger.events if event.client == HOSTILE} == {"fresh"}
        assert HOSTILE not in guarded.record.state.cache


@pytest.mark.slow
@pytest.mark.parametrize(("group", "number"), [("update", 1e38), ("update", -1e300), ("buffers", 1e30)])
def test_an_impossible_number_is_a_lost_reply(group: str, number: float) -> None:
    attacked = play(Averaging(), one_number(group, number))
    lost = Listed(tuple(ListedFault(number, HOSTILE, "lost") for number in range(1, 6)))
    server, client = Averaging().halves("dense")
    without = Session(FEDERATION, Method(server, client), Setting(cohort=10, faults=lost)).advance(5)
    for role in ("weights", "buffers", "counters"):
        assert is_equal(getattr(attacked.model, role), getattr(without.model, role))
    assert {row.status for row in attacked.ledger.rows if row.client == HOSTILE and row.direction == "up"} == {
        "refused"
    }


@pytest.mark.slow
def test_large_statistics_that_are_still_possible_are_for_the_rules() -> None:
    for rule in RULES:
        session = play(Averaging(aggregate=rule), one_number("buffers", 1e11))
        assert np.abs(session.model.buffers.values).max() < 10, rule
    assert np.abs(play(Averaging(), one_number("buffers", 1e11)).model.buffers.values).max() > 1e9


@pytest.mark.slow
def test_an_impossible_per_step_does_not_end_scaffold() -> None:
    config = Scaffold(wire="derived")
    clean = play(config)
    attacked = play(config, lambda reply: replace(reply, values={"per_step": 1e30}))
    assert apart(attacked, clean) < 5
