"""Byte plans: whatever the federation and the budget, a run without mishaps stays within it or is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fedreuse.accounting.dense import dense_reference
from fedreuse.config.recipe import Recipe
from fedreuse.config.run_config import Rounds
from fedreuse.core.errors import ConfigError
from fedreuse.core.method import Evaluations, Method, Scope
from fedreuse.core.metrics import Metrics
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.methods.lean import Lean
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting, quadratic_schema

TRAINING = QuadraticTraining(lr=0.1, noise=0.3)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """One to five tensors, from scalars to matrices; the whole model has at most some thousand weights."""
    shapes = draw(st.lists(st.lists(st.integers(1, 40), max_size=2), min_size=1, max_size=5))
    dtype = draw(st.sampled_from(["float32", "float64"]))
    return Schema(tuple(TensorSpec(f"t{number}.weight", tuple(shape), dtype) for number, shape in enumerate(shapes)))


def run(scope: Scope, lean: Lean, has_buffers: bool) -> tuple[Session, float]:
    """A run of the method on quadratics, and its bytes as a share of dense FedAvg's."""
    found = lean.resolve(scope)
    method: Method = Recipe(found.method, found.uplink, found.downlink).build()
    federation = QuadraticFederation.draw(
        scope.clients, TRAINING, has_buffers=has_buffers, weights=scope.schema.weights
    )
    session = federation.play(method, scope.rounds, Setting(scope.cohort, shares_initial=scope.shares_initial))
    dense = dense_reference(scope.schema)
    used = sum(row.total_bytes for row in session.ledger.rows)
    return session, used / (scope.num_requests * (dense.request_bytes + dense.reply_bytes))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    weights=schemas(),
    has_buffers=st.booleans(),
    clients=st.integers(1, 7),
    cohort=st.integers(1, 7),
    rounds=st.integers(1, 6),
    budget=st.floats(0, 1),
    memory=st.sampled_from(["per_client", "shared"]),
    shares_initial=st.booleans(),
)
@example(  # a dense reply beside a lossy request carries a slope as well
    weights=Schema((TensorSpec("t0.weight", (25,)),)), has_buffers=True, clients=1, cohort=1, rounds=1, budget=0.78125,
    memory="shared", shares_initial=True,
)  # fmt: skip
def test_measured_bytes_are_within_the_budget_or_the_smallest_is_named(
    weights: Schema, has_buffers: bool, clients: int, cohort: int, rounds: int, budget: float, memory: Any,
    shares_initial: bool,
) -> None:  # fmt: skip
    schema = quadratic_schema(has_buffers, weights)
    scope = Scope(schema, clients, min(cohort, clients), rounds, shares_initial)
    lean = Lean(budget, server_memory=memory)
    try:
        _, share = run(scope, lean, has_buffers)
    except ConfigError as error:
        named = re.search(r"must be from ([\d.e-]+), the smallest", str(error))
        assert named is not None
        assert budget < float(named[1])
        lean = replace(lean, budget=float(named[1]))
        _, share = run(scope, lean, has_buffers)
    assert share <= lean.budget


@pytest.mark.parametrize(("rounds", "budget", "before"), [(2, 0.34, 0.5007), (3, 0.45, 0.4996)])
def test_short_runs_pay_for_dense_requests_in_round_1_too(rounds: int, budget: float, before: float) -> None:
    """A model of 187 kB, 5 of 20 clients: the plan counted round 1 as free although its requests were dense."""
    weights = Schema(
        (TensorSpec("a.weight", (200, 200)), TensorSpec("b.weight", (66, 100)), TensorSpec("b.bias", (130,)))
    )
    scope = Scope(quadratic_schema(has_buffers=False, weights=weights), 20, 5, rounds)
    _, share = run(scope, Lean(budget), has_buffers=False)
    assert 0.8 * budget <= share <= budget < before


def run_with_evaluations(scope: Scope, lean: Lean, every: int) -> float:
    """Return the bytes of a run with evaluations by all clients, as a share of those of dense FedAvg with the same."""
    found = lean.resolve(scope)
    method: Method = Recipe(found.method, found.uplink, found.downlink).build()
    federation = QuadraticFederation.draw(scope.clients, TRAINING, has_buffers=True, weights=scope.schema.weights)
    session = Session(federation, method, Setting(scope.cohort))
    rounds = Rounds(scope.rounds, scope.cohort, every)
    for number in range(1, scope.rounds + 1):
        session.advance(1)
        if rounds.is_evaluated(number):
            session.evaluate("received", "validation")
    session.evaluate("received", "test")
    session.close()
    rows, dense = session.ledger.rows, dense_reference(scope.schema)
    evaluated = sum(row.total_bytes for row in rows if row.purpose == "evaluation")
    assert sum(row.purpose == "evaluation" for row in rows) == 2 * scope.clients * (rounds.num_evaluations + 1)
    trained = scope.num_requests * (dense.request_bytes + dense.reply_bytes)
    return sum(row.total_bytes for row in rows) / (trained + evaluated)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    weights=schemas(),
    clients=st.integers(1, 7),
    cohort=st.integers(1, 7),
    rounds=st.integers(1, 7),
    every=st.integers(1, 7),
    budget=st.floats(0, 1),
    memory=st.sampled_from(["per_client", "shared", "none"]),
)
def test_evaluation_by_clients_is_within_the_budget(
    weights: Schema, clients: int, cohort: int, rounds: int, every: int, budget: float, memory: Any
) -> None:
    times = Rounds(rounds, min(cohort, clients), every).num_evaluations + 1
    evaluations = Evaluations(times, Metrics(1, 1.0, 1.0).longest.to_values())
    scope = Scope(quadratic_schema(True, weights), clients, min(cohort, clients), rounds, evaluations=evaluations)
    lean = Lean(budget, server_memory=memory)
    try:
        share = run_with_evaluations(scope, lean, every)
    except ConfigError as error:
        named = re.search(r"must be from ([\d.e-]+), the smallest", str(error))
        assert named is not None
        assert budget < float(named[1])
        lean = replace(lean, budget=float(named[1]))
        share = run_with_evaluations(scope, lean, every)
    assert share <= lean.budget


def test_a_budget_too_small_for_its_evaluations_says_how_many_it_has_room_for() -> None:
    """10 of 10 clients, 50 rounds: an evaluation by all takes about 1 / (2 x 50) of dense training."""
    schema = quadratic_schema(has_buffers=False, weights=Schema((TensorSpec("a.weight", (200, 200)),)))
    answer = Metrics(1, 1.0, 1.0).longest.to_values()

    def scope(times: int) -> Scope:
        return Scope(schema, 10, 10, 50, evaluations=Evaluations(times, answer))

    with pytest.raises(ConfigError, match=r"must be from 0\.1078.*room for 5 of them: raise rounds\.evaluate_every"):
        Lean(0.05).resolve(scope(12))
    Lean(0.05).resolve(scope(5))
    with pytest.raises(ConfigError, match="room for 5"):
        Lean(0.05).resolve(scope(6))
    with pytest.raises(ConfigError, match="alone"):
        Lean(0.005).resolve(scope(1))
    # budget 1 is dense whatever is evaluated
    assert Lean(1.0).resolve(scope(12)) == Lean(1.0).resolve(replace(scope(1), evaluations=None))
