"""DG-FedReuse: rounds by hand, its invariants, a straight-line reference, the schedule alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from fedreuse.accounting.boundaries.boundary import Reference, boundary_of
from fedreuse.accounting.traffic import traffic
from fedreuse.compression.codecs.top_k import TopK
from fedreuse.compression.links.plain import Plain
from fedreuse.core.cohort import Cohort
from fedreuse.core.errors import ConfigError
from fedreuse.core.message import Message
from fedreuse.core.method import Method
from fedreuse.core.model import Model
from fedreuse.core.population import Population
from fedreuse.core.randomness import stream
from fedreuse.core.schema import ModelSchema, Schema, TensorSpec
from fedreuse.core.tensors import Tensors, scale, to_dense, zeros
from fedreuse.engine.faults import Listed, ListedFault, RandomFaults
from fedreuse.methods.dg_fedreuse import DgFedReuse, score
from fedreuse.methods.gates.age_only import AgeOnly
from fedreuse.methods.gates.gate import gates
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import NOISY, assert_close, build, is_same, one_bowl, plain_problem, top_k
from tests.references.dg_fedreuse import Options, dg_fedreuse

NEVER = {"name": "proxy", "tau_start": 3.0, "tau_floor": 3.0, "max_age": 10**6, "quota": 0.0}
"""A gate that never fires: no distance reaches 3."""


def outcomes(session: Session, round_number: int) -> dict[int, str]:
    return {event.client: event.outcome for event in session.ledger.events if event.round_number == round_number}


# a round by hand


def test_two_rounds_by_hand() -> None:
    # one client, F = 1/2 w^2, one step of 0.1, rho 0.5, age_only: round 1 is fresh, w1 = w - 0.1 w = 0.9 w;
    # round 2 reuses the update -0.1 w at age 1: w2 = 0.9 w - 0.5 * 0.1 w = 0.85 w;
    # round 3 reuses it at age 2: w3 = 0.85 w - 0.25 * 0.1 w = 0.825 w
    federation = one_bowl()
    gate = {"name": "age_only", "max_age": 3, "quota": 0.0}
    session = federation.play(build("dg_fedreuse", gate=gate, rho=0.5, mu=0.0), 4, Setting(cohort=1))
    w = federation.initial.weights.values
    np.testing.assert_allclose(session.models[1].weights.values, 0.9 * w, rtol=1e-13)
    np.testing.assert_allclose(session.models[2].weights.values, 0.85 * w, rtol=1e-13)
    np.testing.assert_allclose(session.models[3].weights.values, 0.825 * w, rtol=1e-13)
    # age 3 reaches the limit: fresh again
    np.testing.assert_allclose(session.models[4].weights.values, 0.7425 * w, rtol=1e-13)
    reasons = [(event.outcome, event.reason, event.age) for event in session.ledger.events]
    assert reasons == [("fresh", "no cache", None), ("reused", "", 1), ("reused", "", 2), ("fresh", "age", 3)]


def test_the_signature_is_an_average_by_hand() -> None:
    # signature after round 1: p = g(w0); after round 2: 0.9 g(w0) + 0.1 g(w1), without noise
    federation = QuadraticFederation.draw(1, has_buffers=False)
    gate = {"name": "proxy", "max_age": 1, "batches": 1}
    session = federation.play(build("dg_fedreuse", gate=gate), 2, Setting(cohort=1))
    first, second = (
        federation.curvatures[0][6:] * (model.weights.values[6:] - federation.optima[0][6:])
        for model in session.models[:2]
    )
    memory = next(iter(dict(session.store.items())[0].memories.values()))
    np.testing.assert_allclose(memory.state.head.values, 0.9 * first + 0.1 * second, rtol=1e-13)


# the score


def head(*numbers: float) -> Tensors:
    schema = Schema((TensorSpec("fc.weight", (len(numbers),), "float64"),))
    return Tensors(schema, np.array(numbers, np.float64))


def test_scores_by_hand() -> None:
    # the same direction 0, a right angle 1, the opposite 2; (1, 0) against (3, 4): 1 - 3/5
    assert score(head(1, 2), head(2, 4)) == pytest.approx(0, abs=1e-12)
    assert score(head(1, 0), head(0, 5)) == 1.0
    assert score(head(1, 2), head(-1, -2)) == pytest.approx(2)
    assert score(head(1, 0), head(3, 4)) == pytest.approx(0.4)
    assert score(head(0, 0), head(3, 4)) == 1.0


@pytest.mark.parametrize(("norm", "tolerance"), [(1.0, 1e-11), (1e-2, 2e-8), (1e-4, 2e-4)])
def test_the_score_knows_no_scale_but_the_small_term(norm: float, tolerance: float) -> None:
    rng = np.random.default_rng(0)
    p, h = (head(*rng.normal(size=6)) for _ in range(2))
    p, h = (scale(v, norm / float(np.linalg.norm(v.values))) for v in (p, h))
    assert score(p, p) == pytest.approx(0, abs=tolerance)
    assert score(scale(p, 7.0), h) == pytest.approx(score(p, h), abs=tolerance)
    assert score(p, scale(h, 0.5)) == pytest.approx(score(p, h), abs=10 * tolerance)
    assert 0 <= score(p, h) <= 2


# reductions


@pytest.mark.slow
@pytest.mark.parametrize(
    "gate",
    [
        {"name": "proxy", "tau_start": 0.0, "tau_floor": 0.0},
        {"name": "proxy", "max_age": 1},
        {"name": "proxy", "quota": 1.0},
        {"name": "age_only", "quota": 1.0},
        {"name": "random", "probability": 1.0},
        {"name": "drift", "threshold": 1e-12},
        {"name": "quantile", "fraction": 1.0},
        {"name": "always"},
    ],
    ids=["tau 0", "max_age 1", "quota 1", "age_only quota 1", "random 1", "drift 0", "quantile 1", "always"],
)
@pytest.mark.parametrize("buffers", ["dense", "as_weights"])
def test_everybody_fresh_is_fedprox_with_top_k_bit_for_bit(gate: Mapping[str, Any], buffers: str) -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    for ratio in (1.0, 0.3):
        for mu, name in ((0.5, "fedprox"), (0.0, "fedavg")):
            own = {"mu": mu} if name == "fedprox" else {}
            wanted = federation.play(build(name, top_k(ratio), buffers=buffers, **own), 6)
            session = federation.play(build("dg_fedreuse", top_k(ratio), buffers=buffers, gate=gate, mu=mu), 6)
            assert all(event.outcome == "fresh" for event in session.ledger.events)
            assert all(is_same(*pair) for pair in zip(session.models, wanted.models, strict=True))


def test_ratio_one_is_dense_bit_for_bit() -> None:
    federation = QuadraticFederation.draw(5, NOISY)
    for buffers in ("dense", "as_weights"):
        left, right = (
            federation.play(build("dg_fedreuse", uplink, buffers=buffers, gate={"name": "age_only"}), 6)
            for uplink in (None, top_k(1.0))
        )
        assert is_same(left.model, right.model)
        assert any(event.outcome == "reused" for event in left.ledger.events)


def test_a_gate_that_never_fires_trains_each_client_once() -> None:
    session = QuadraticFederation.draw(6, NOISY).play(build("dg_fedreuse", gate=NEVER), 20)
    trained = Counter(event.client for event in session.ledger.events if event.outcome == "fresh")
    assert trained == dict.fromkeys(range(6), 1)
    updates = Counter(row.client for row in session.ledger.rows if row.kind == "update")
    assert updates == trained


def test_replayed_caches_move_the_model_by_the_same_step_every_round() -> None:
    federation = QuadraticFederation.draw(4, has_buffers=False)
    session = federation.play(build("dg_fedreuse", gate=NEVER, rho=1.0, mu=0.0), 5, Setting(cohort=4))
    steps = [
        after.weights.values - before.weights.values
        for before, after in zip(session.models, session.models[1:], strict=False)
    ]
    for step in steps[1:]:
        np.testing.assert_allclose(step, steps[0], rtol=1e-12)


def test_decay_matters_once_a_reuse_happened() -> None:
    federation = QuadraticFederation.draw(4)
    one, less = (
        federation.play(build("dg_fedreuse", gate={"name": "age_only"}, rho=rho), 3, Setting(cohort=4))
        for rho in (1.0, 0.5)
    )
    assert is_same(one.models[1], less.models[1])  # nothing to reuse in the first round
    assert any(event.outcome == "reused" for event in one.ledger.events if event.round_number == 2)
    assert not is_same(one.models[2], less.models[2])


def test_ages_quota_and_norms() -> None:
    gate = {"name": "proxy", "tau_start": 0.6, "tau_floor": 0.3, "max_age": 3, "quota": 0.5, "batches": 1}
    federation = QuadraticFederation.draw(7, NOISY)
    method, rho = build("dg_fedreuse", top_k(0.5), gate=gate, rho=0.6), 0.6
    session = Session(federation, method, Setting(cohort=5))
    for number in range(1, 16):
        before, cache = session.model, session.record.state.cache
        session.advance(1)
        events = [event for event in session.ledger.events if event.round_number == number]
        assert sum(event.outcome == "fresh" for event in events) >= 3  # ceil(0.5 * 5)
        reused = [event for event in events if event.outcome == "reused"]
        assert all(event.age in (1, 2) for event in reused)
        weights = federation.population.ratio_weights(federation.cohort(number, 5).clients)
        # what the round moved = fresh part + sum of omega rho^a cache, and |reused| = rho^a |cache|
        fresh_part = sum(
            weights[event.client] * to_dense(session.record.state.cache[event.client].weights).values
            for event in events
            if event.outcome == "fresh"
        )
        reused_part = np.zeros(12)
        for event in reused:
            cached = to_dense(cache[event.client].weights).values
            contribution = rho**event.age * cached
            assert np.linalg.norm(contribution) == pytest.approx(rho**event.age * np.linalg.norm(cached))
            reused_part += weights[event.client] * contribution
        moved = session.model.weights.values - before.weights.values
        np.testing.assert_allclose(moved, fresh_part + reused_part, rtol=1e-10, atol=1e-13)


def test_bytes_are_fresh_charges_and_sixteen_per_reuse() -> None:
    session = QuadraticFederation.draw(6, NOISY).play(build("dg_fedreuse", top_k(0.3), gate={"name": "age_only"}), 8)
    reference = Reference(session.schema.dense_bytes, 0, 0)
    found = traffic(boundary_of("update_fields"), session.ledger.rows, session.ledger.events, reference)
    for number in range(1, 9):
        charges = [
            row.group_bytes() for row in session.ledger.rows if row.kind == "update" and row.round_number == number
        ]
        num_reused = sum(outcome == "reused" for outcome in outcomes(session, number).values())
        assert found.up[number - 1] == sum(charges) + 16 * num_reused


def test_without_sparsity_and_reuse_nothing_is_saved() -> None:
    session = QuadraticFederation.draw(6).play(build("dg_fedreuse", top_k(1.0), gate="always", buffers="as_weights"), 4)
    reference = Reference(session.schema.dense_bytes, 0, 0)
    found = traffic(boundary_of("update_fields"), session.ledger.rows, session.ledger.events, reference)
    assert found.saving("up") == 0.0
    assert found.mean_saving("up") == 0.0


def test_a_deterministic_proxy_gives_the_same_score_again() -> None:
    # server_lr 0 holds the model still: only noise could change the score
    federation = QuadraticFederation.draw(3, NOISY, has_buffers=False)
    for is_deterministic in (True, False):
        gate = {**NEVER, "deterministic": is_deterministic}
        method = build("dg_fedreuse", gate=gate, server_lr=0.0)
        session = federation.play(method, 5, Setting(cohort=3))
        scores = {event.score for event in session.ledger.events if event.client == 1 and event.score is not None}
        assert (len(scores) == 1) is is_deterministic


# exchanges


def test_the_certain_train_at_once_and_only_the_doubtful_are_scored() -> None:
    gate = {"name": "proxy", "tau_start": 0.0, "tau_floor": 0.0, "max_age": 2, "batches": 1}
    session = QuadraticFederation.draw(3).play(build("dg_fedreuse", gate=gate), 2, Setting(cohort=3))
    kinds = [
        (row.round_number, row.exchange, row.direction, row.kind) for row in session.ledger.rows if row.client == 0
    ]
    assert kinds == [
        (1, 1, "down", "train"),
        (1, 1, "up", "update"),
        (2, 2, "down", "score"),
        (2, 2, "up", "score"),
        (2, 3, "down", "train"),
        (2, 3, "up", "update"),
    ]
    # the second request carries no model: the client kept it
    second = next(row for row in session.ledger.rows if row.exchange == 3 and row.direction == "down")
    assert second.fields == {}
    assert second.value_bytes == 1
    answer = next(row for row in session.ledger.rows if row.exchange == 2 and row.direction == "up")
    assert answer.value_bytes == 4


@pytest.mark.parametrize("gate", ["age_only", "random", "drift"])
def test_gates_that_ask_nobody_contact_nobody_they_reuse(gate: str) -> None:
    session = QuadraticFederation.draw(4).play(build("dg_fedreuse", gate=gate), 6)
    for number in range(1, 7):
        asked = {row.client for row in session.ledger.rows if row.round_number == number}
        assert asked == {client for client, outcome in outcomes(session, number).items() if outcome == "fresh"}
    assert any(event.outcome == "reused" for event in session.ledger.events)


def test_clients_hold_no_signature_that_nobody_asks_for() -> None:
    session = QuadraticFederation.draw(4).play(build("dg_fedreuse", gate="age_only"), 3)
    assert all(memory.state.head is None for _, kept in session.store.items() for memory in kept.memories.values())


def test_the_cache_is_sparse_in_memory() -> None:
    session = QuadraticFederation.draw(4).play(build("dg_fedreuse", top_k(0.3)), 2)
    for cached in session.record.state.cache.values():
        assert cached.weights.is_sparse
        assert len(cached.buffers.values) == len(cached.counters.values) == 0


@dataclass(frozen=True)
class Hoarder:
    """The same gate, for which no cache is ever too old to be kept."""

    inner: Any
    expiry: ClassVar[int | None] = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["proxy", "quantile", "age_only", "random", "drift"])
@pytest.mark.parametrize("cover_lost", [False, True])
def test_what_is_too_old_is_let_go_and_nothing_changes(name: str, cover_lost: bool) -> None:
    federation = QuadraticFederation.draw(12, NOISY)
    gate = gates.parse({"name": name, "max_age": 3, "quota": 0.2}, "gate")
    frugal = DgFedReuse(gate, cover_lost=cover_lost)
    setting = Setting(faults=RandomFaults(lost=0.1, late=0.1))
    sessions = [
        Session(federation, Method(*config.halves("dense"), {"update": Plain(TopK(0.5))}), setting).advance(30)
        for config in (frugal, replace(frugal, gate=Hoarder(gate)))
    ]
    lean, full = sessions
    assert all(is_same(one, other) for one, other in zip(lean.models, full.models, strict=True))
    assert lean.ledger.events == full.ledger.events
    assert [row.total_bytes for row in lean.ledger.rows] == [row.total_bytes for row in full.ledger.rows]
    assert {event.reason for event in lean.ledger.events} >= {"age", "no cache"}
    assert lean.record.state.rounds == full.record.state.rounds
    assert len(full.record.state.cache) == 12
    # after round 30 an update of round 28 is two rounds old, and three, too old, when it could be used next
    young = {client for client, sent in lean.record.state.rounds.items() if sent > 28}
    assert set(lean.record.state.cache) == young
    assert set(lean.record.state.senders) <= {29, 30}


def test_a_cache_that_may_cover_a_loss_at_any_age_is_kept() -> None:
    session = QuadraticFederation.draw(8).play(build("dg_fedreuse", gate="always"), 12)
    assert set(session.record.state.cache) == set(session.record.state.rounds)
    assert len(session.record.state.senders) == 0


# losses


def lose(*where: tuple[int, int, int]) -> Setting:
    return Setting(cohort=3, faults=Listed(tuple(ListedFault(r, c, "lost", e) for r, e, c in where)))


def test_a_lost_score_leaves_the_client_out_unless_covered() -> None:
    federation = QuadraticFederation.draw(3)
    plain = federation.play(build("dg_fedreuse", gate=NEVER), 2, lose((2, 1, 1)))
    assert outcomes(plain, 2) == {0: "reused", 1: "lost", 2: "reused"}
    covered = federation.play(build("dg_fedreuse", gate=NEVER, cover_lost=True), 2, lose((2, 1, 1)))
    event = next(event for event in covered.ledger.events if event.round_number == 2 and event.client == 1)
    assert (event.outcome, event.reason, event.age) == ("reused", "covered", 1)
    assert not is_same(plain.model, covered.model)


def test_a_lost_training_may_be_covered_but_never_by_a_cache_that_is_too_old() -> None:
    federation = QuadraticFederation.draw(3)
    young = {"name": "age_only", "max_age": 3, "quota": 1.0}
    covered = federation.play(build("dg_fedreuse", gate=young, cover_lost=True), 2, lose((2, 1, 0)))
    assert outcomes(covered, 2) == {0: "reused", 1: "fresh", 2: "fresh"}
    old = {"name": "age_only", "max_age": 1}
    session = federation.play(build("dg_fedreuse", gate=old, cover_lost=True), 2, lose((2, 1, 0)))
    assert outcomes(session, 2) == {0: "lost", 1: "fresh", 2: "fresh"}


def test_if_nobody_contributes_the_model_stands_still() -> None:
    session = QuadraticFederation.draw(3).play(build("dg_fedreuse"), 1, lose(*((1, 1, client) for client in range(3))))
    assert is_same(session.models[0], session.models[1])
    assert set(outcomes(session, 1).values()) == {"lost"}


@pytest.mark.parametrize("number", [float("nan"), -1e30, -1e-9, 2.1])
def test_a_score_that_is_none_counts_as_turned(number: float) -> None:
    federation = QuadraticFederation.draw(2)
    gate = {"name": "proxy", "tau_start": 0.9, "tau_floor": 0.9, "quota": 0.0}
    server = build("dg_fedreuse", gate=gate).server
    session = federation.play(build("dg_fedreuse", gate=gate), 1, Setting(cohort=2))
    conversation = server.round(session.record.state, federation.cohort(2, 2))
    assert {message.kind for message in next(conversation).values()} == {"score"}
    asked = conversation.send(
        {
            0: Message("score", values={"score": number}),
            1: Message("score", values={"score": 0.1}),
        }
    )
    assert list(asked) == [0]


# switches


def test_dropped_clients_leave_their_weight_to_the_others() -> None:
    federation = QuadraticFederation.draw(4, has_buffers=False)
    gate = {"name": "age_only", "quota": 0.5}
    session = federation.play(build("dg_fedreuse", gate=gate, reused="drop"), 2, Setting(cohort=4))
    found = outcomes(session, 2)
    assert sorted(found.values()) == ["dropped", "dropped", "fresh", "fresh"]
    fresh = [client for client, outcome in found.items() if outcome == "fresh"]
    weights = federation.population.ratio_weights(fresh)
    wanted = sum(weights[client] * session.record.state.cache[client].weights.values for client in fresh)
    moved = session.models[2].weights.values - session.models[1].weights.values
    np.testing.assert_allclose(moved, wanted, rtol=1e-11, atol=1e-14)


def test_a_variance_that_would_turn_negative_keeps_its_value_and_is_counted() -> None:
    # every update of running_var is -0.8 per visit; replayed without decay it would pass zero in round 2
    federation = QuadraticFederation.draw(2)
    federation = replace(federation, steps=np.array([20, 20]), variances=np.full((2, 3), 0.05))
    method = build("dg_fedreuse", top_k(1.0), buffers="as_weights", gate={**NEVER}, rho=1.0)
    session = federation.play(method, 3, Setting(cohort=2))
    variances = [model.buffers["norm.running_var"] for model in session.models]
    # round 1: 0.05 + 0.95 * 0.9^20 = 0.1655 < 1, a step of -0.83; rounds 2 and 3 would end at -0.67 and are held
    np.testing.assert_allclose(variances[1], 0.05 + 0.95 * 0.9**20)
    np.testing.assert_array_equal(variances[2], variances[1])
    np.testing.assert_array_equal(variances[3], variances[1])
    assert session.ledger.counts["kept variances"] == 6
    assert all((part > 0).all() for part in variances)


@pytest.mark.parametrize(
    ("field", "value"),
    [("rho", 1.1), ("rho", -0.1), ("mu", -1.0), ("server_lr", -1.0), ("signature_ema", 1.0), ("signature_ema", -0.1)],
)
def test_values_out_of_range_are_refused(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=rf"method\.{field} must.*got {value}"):
        DgFedReuse(**{field: value})


def test_only_a_gate_that_looks_at_gradients_needs_them() -> None:
    assert DgFedReuse().needs.gradients
    assert not DgFedReuse(gate=AgeOnly()).needs.gradients


# the reference


GATE = {"name": "proxy", "tau_start": 0.3, "tau_floor": 0.1, "decay": 0.2, "max_age": 3, "quota": 0.7, "batches": 2}


@pytest.mark.slow
@pytest.mark.parametrize("as_weights", [False, True], ids=["dense", "as_weights"])
@pytest.mark.parametrize("switch", ["plain", "renormalise", "drop"])
def test_equals_the_reference(as_weights: bool, switch: str) -> None:
    federation = QuadraticFederation.draw(8, replace(NOISY, noise=1.0))
    own = {"renormalise": True} if switch == "renormalise" else {"reused": "drop"} if switch == "drop" else {}
    method = build(
        "dg_fedreuse", top_k(0.4), buffers="as_weights" if as_weights else "dense",
        gate=GATE, rho=0.6, mu=0.3, signature_ema=0.8, **own,
    )  # fmt: skip
    session = federation.play(method, 9, Setting(cohort=5))
    options = Options(
        tau_0=0.3, tau_min=0.1, gamma=0.2, max_age=3, quota=0.7, rho=0.6, mu=0.3, ema=0.8, batches=2, ratio=0.4,
        as_weights=as_weights, renormalise=switch == "renormalise", drop=switch == "drop",
    )  # fmt: skip
    wanted = dg_fedreuse(plain_problem(federation, 9, 5, batches=2), options)
    reasons = Counter()
    for number, (model, step) in enumerate(zip(session.models[1:], wanted, strict=True), start=1):
        assert_close(model, step.weights, step.statistics, step.counter)
        events = {event.client: event for event in session.ledger.events if event.round_number == number}
        assert {client: event.reason for client, event in events.items() if event.outcome == "fresh"} == step.fresh
        for client, event in events.items():
            assert event.age == step.ages.get(client)
            assert event.score == (pytest.approx(step.scores[client], rel=1e-12) if client in step.scores else None)
        reasons.update(event.reason or event.outcome for event in events.values())
    # the setting is not degenerate: every reason occurs, and somebody is reused
    assert {"no cache", "score", "age", "quota", "dropped" if switch == "drop" else "reused"} <= reasons.keys()


# the schedule alone


@pytest.mark.slow
def test_the_schedule_alone_reuses_more_than_a_third() -> None:
    # age_only, max_age 4, quota 0.3, 50 clients, 10 per round, 90 rounds: 36.9 %
    schema = ModelSchema(Schema((TensorSpec("w", (1,), "float64"),)))
    model = Model(zeros(schema.weights), zeros(schema.buffers), zeros(schema.counters))
    population = Population(np.ones(50, np.int64))
    server, _ = DgFedReuse(gate=AgeOnly(max_age=4, quota=0.3)).halves("as_weights")  # one sum less per round
    update = Message("update", {"update": zeros(schema.weights)})
    shares = []
    for seed in range(100):
        state, num_reused = server.init(model, population), 0
        for number in range(1, 91):
            drawn = stream(seed, "schedule", number).choice(50, 10, replace=False)
            cohort = Cohort(number, tuple(sorted(drawn.tolist())), seed, (), population)
            conversation = server.round(state, cohort)
            replies = dict.fromkeys(next(conversation), update)
            with pytest.raises(StopIteration) as finished:
                conversation.send(replies)
            state, events = finished.value.value
            num_reused += sum(event.outcome == "reused" for event in events.clients)
        shares.append(num_reused / 900)
    assert np.mean(shares) == pytest.approx(0.369, abs=0.003)
