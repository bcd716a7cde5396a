"""Drift: rounds by hand, the ends of the threshold, and what the server keeps for it."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError
from fedreuse.core.message import Message
from fedreuse.core.model import Model
from fedreuse.core.population import Population
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, zeros
from fedreuse.core.values import flatten, unflatten
from fedreuse.engine.faults import RandomFaults
from fedreuse.engine.state.tensor_store import TensorStore
from fedreuse.methods.dg_fedreuse import DgFedReuse
from fedreuse.methods.gates.drift import Drift
from fedreuse.methods.gates.gate import Gate, gates
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import NOISY, build, is_same, one_bowl, top_k

COHORT = Cohort(9, (0, 1, 2, 3), seed=0)
SCHEMA = ModelSchema(Schema((TensorSpec("w", (2,), "float64"),)))


def vector(*numbers: float) -> Tensors:
    return Tensors(SCHEMA.weights, np.array(numbers, np.float64))


def gate(**settings: Any) -> dict[str, Any]:
    return {"name": "drift", **settings}


def decisions(session: Session) -> list[tuple[int, int, str, str, int | None]]:
    return [
        (event.round_number, event.client, event.outcome, event.reason, event.age) for event in session.ledger.events
    ]


# the decision


def test_at_the_threshold_is_fresh() -> None:
    scores = {0: 0.5, 1: 0.4999, 2: inf, 3: 0.0}
    assert Drift(threshold=0.5, quota=0.0).choose(scores, {}, {}, COHORT) == {0: "score", 2: "score"}


def test_the_quota_follows_the_scores() -> None:
    # ceil(0.75 * 4) = 3, of which one is certain: the two that drifted farthest
    chosen = Drift(threshold=2.0, quota=0.75).choose({0: 0.1, 1: 0.7, 2: 0.3}, {}, {3: "age"}, COHORT)
    assert chosen == {1: "quota", 2: "quota"}


def test_only_this_gate_asks_for_drift_and_it_asks_no_client() -> None:
    assert [name for name in gates.names() if gates.parse(name, "gate").scores_drift] == ["drift"]
    assert not Gate.scores_drift
    assert Drift().plan is None
    assert not DgFedReuse(gate=Drift()).needs.gradients


def test_which_gates_look_at_what_data_say() -> None:
    scored = {name for name in gates.names() if gates.parse(name, "gate").is_scored}
    assert scored == {"drift", "proxy", "quantile"}


@pytest.mark.parametrize("threshold", [0.0, -1.0, inf, float("nan")])
def test_a_threshold_out_of_range_is_refused(threshold: float) -> None:
    with pytest.raises(ConfigError, match=rf"gate\.threshold must be positive and finite.*got {threshold}"):
        gates.parse(gate(threshold=threshold), "method.gate")


# by hand


def test_five_rounds_by_hand() -> None:
    # one client, F = 1/2 w^2, one step of 0.1, rho 0.5, threshold 1.25, all in multiples of the first w:
    # round 1: no cache, x = -0.1,                                 w = 1    - 0.1          = 0.9
    # round 2: D = |0.9 - 1| / 0.1 = 1, reused at age 1,           w = 0.9  - 0.5 * 0.1    = 0.85
    # round 3: D = |0.85 - 1| / 0.1 = 1.5, trains, x = -0.085,     w = 0.85 - 0.085        = 0.765
    # round 4: D = |0.765 - 0.85| / 0.085 = 1, reused,             w = 0.765 - 0.5 * 0.085 = 0.7225
    # round 5: D = |0.7225 - 0.85| / 0.085 = 1.5, trains,          w = 0.7225 - 0.07225    = 0.65025
    federation = one_bowl()
    method = build("dg_fedreuse", gate=gate(threshold=1.25, max_age=9, quota=0.0), rho=0.5, mu=0.0)
    session = federation.play(method, 5, Setting(cohort=1))
    w = federation.initial.weights.values
    for model, factor in zip(session.models, (1, 0.9, 0.85, 0.765, 0.7225, 0.65025), strict=True):
        np.testing.assert_allclose(model.weights.values, factor * w, rtol=1e-13)
    events = session.ledger.events
    assert [event.score for event in events] == [None, *map(pytest.approx, (1, 1.5, 1, 1.5))]
    assert [(event.outcome, event.reason) for event in events] == [
        ("fresh", "no cache"), ("reused", ""), ("fresh", "score"), ("reused", ""), ("fresh", "score"),
    ]  # fmt: skip


def test_three_clients_by_hand() -> None:
    # round 1: updates (6, 8), (0, 0) and (3, 4) with equal weights move the model by (3, 4), whose norm is 5;
    # round 2: D = 5 / 10 = 0.5, infinity, 5 / 5 = 1: with threshold 0.75 client 0 alone is reused, and not asked
    server, _ = DgFedReuse(gate=Drift(threshold=0.75, quota=0.0), rho=0.5).halves("dense")
    population = Population(np.ones(3, np.int64))
    model = Model(vector(1, 1), zeros(SCHEMA.buffers), zeros(SCHEMA.counters))
    updates = {0: vector(6, 8), 1: vector(0, 0), 2: vector(3, 4)}
    state, events = server.init(model, population), None
    for number, asked in ((1, {0, 1, 2}), (2, {1, 2})):
        conversation = server.round(state, Cohort(number, (0, 1, 2), 0, (), population))
        assert next(conversation).keys() == asked
        with pytest.raises(StopIteration) as finished:
            conversation.send({client: Message("update", {"update": updates[client]}) for client in asked})
        state, events = finished.value.value
    assert events is not None
    assert [event.score for event in events.clients] == [0.5, inf, 1.0]
    assert [event.outcome for event in events.clients] == ["reused", "fresh", "fresh"]
    # (1, 1) + (3, 4) + (0.5 * (6, 8) + (0, 0) + (3, 4)) / 3
    np.testing.assert_allclose(state.model.weights.values, [4 + 2, 5 + 8 / 3])
    # client 0's update is from round 1, the others' from round 2
    assert {number: start.values.tolist() for number, start in state.starts.items()} == {1: [1, 1], 2: [4, 5]}


# the ends of the threshold


@pytest.mark.parametrize("buffers", ["dense", "as_weights"])
def test_never_reached_it_is_age_only_without_a_quota_bit_for_bit(buffers: str) -> None:
    federation = QuadraticFederation.draw(7, NOISY)
    setting = Setting(cohort=4, faults=RandomFaults(lost=0.1, late=0.1))
    sessions = [
        federation.play(build("dg_fedreuse", top_k(0.5), buffers=buffers, gate=chosen), 12, setting)
        for chosen in (gate(threshold=1e9, max_age=3, quota=0.0), {"name": "age_only", "max_age": 3, "quota": 0.0})
    ]
    one, other = sessions
    assert all(is_same(*pair) for pair in zip(one.models, other.models, strict=True))
    assert decisions(one) == decisions(other)
    assert [row.total_bytes for row in one.ledger.rows] == [row.total_bytes for row in other.ledger.rows]
    assert any(event.outcome == "reused" for event in one.ledger.events)


def test_always_reached_everybody_trains() -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    wanted = federation.play(build("fedprox", top_k(0.3), mu=0.5), 6)
    session = federation.play(build("dg_fedreuse", top_k(0.3), gate=gate(threshold=1e-12), mu=0.5), 6)
    assert all(is_same(*pair) for pair in zip(session.models, wanted.models, strict=True))
    assert {event.reason for event in session.ledger.events} >= {"no cache", "score"}


def test_between_the_ends_every_reason_occurs_and_scores_tell_who_trains() -> None:
    settings: Mapping[str, Any] = {"threshold": 1.2, "max_age": 4, "quota": 0.5}
    session = QuadraticFederation.draw(9, NOISY).play(build("dg_fedreuse", top_k(0.5), gate=gate(**settings)), 40)
    events = session.ledger.events
    assert {event.reason for event in events} == {"", "no cache", "age", "score", "quota"}
    for event in events:
        assert (event.score is None) == (event.reason in ("no cache", "age"))
        if event.score is not None:
            assert (event.score >= 1.2) == (event.reason == "score")


# what the server keeps


@pytest.mark.parametrize("max_age", [1, 2, 4])
def test_as_many_models_as_rounds_that_the_cache_comes_from(max_age: int) -> None:
    federation = QuadraticFederation.draw(12, NOISY)
    method = build("dg_fedreuse", top_k(0.5), gate=gate(threshold=1.5, max_age=max_age, quota=0.0))
    session = Session(federation, method, Setting(cohort=4, faults=RandomFaults(lost=0.2)))
    most = 0
    for _ in range(25):
        session.advance(1)
        state = session.record.state
        assert set(state.starts) == {state.rounds[client] for client in state.cache}
        for number, start in state.starts.items():
            np.testing.assert_array_equal(start.values, session.models[number - 1].weights.values)
        most = max(most, len(state.starts))
    assert most == max_age - 1


def test_a_rule_that_forgets_a_client_leaves_nothing_that_stays() -> None:
    method = build("dg_fedreuse", gate=gate(threshold=1e9, max_age=3), aggregate={"name": "krum", "bad": 0.1})
    session = QuadraticFederation.draw(8, NOISY).play(method, 12, Setting(cohort=6))
    state = session.record.state
    assert len(state.cache) < 3  # krum keeps one update of a round
    assert {state.rounds[client] for client in state.cache} <= set(state.starts)
    assert len(state.starts) <= 2


@pytest.mark.parametrize("name", [name for name in gates.names() if name != "drift"])
def test_no_other_gate_keeps_models(name: str) -> None:
    session = QuadraticFederation.draw(4).play(build("dg_fedreuse", gate=name), 3)
    assert len(session.record.state.starts) == 0


def test_models_on_disk_and_a_resumed_session_change_no_bit(tmp_path: Path) -> None:
    federation = QuadraticFederation.draw(7, NOISY)
    method = build("dg_fedreuse", top_k(0.5), gate=gate(threshold=1.2))
    plain = federation.play(method, 12, Setting(cohort=4))
    assert any(event.outcome == "reused" for event in plain.ledger.events)
    stored = Setting(cohort=4, tensors=TensorStore(tmp_path, federation.schema, min_bytes=0))
    session = federation.play(method, 5, stored).resumed()
    names = [path.name for path in tmp_path.glob("state.starts-*")]
    assert len(names) == len(session.record.state.starts) > 0
    session.advance(7)
    assert all(is_same(*pair) for pair in zip(session.models, plain.models, strict=True))
    assert session.ledger.events == plain.ledger.events


def test_a_state_that_was_stored_before_the_field_was_loads() -> None:
    federation = QuadraticFederation.draw(4)
    state = federation.play(build("dg_fedreuse", gate="age_only"), 3).record.state
    plain, arrays = flatten(state, federation.schema)
    del plain["fields"]["starts"]
    loaded = unflatten(plain, arrays, federation.schema)
    assert len(loaded.starts) == 0
    assert is_same(loaded.model, state.model)
