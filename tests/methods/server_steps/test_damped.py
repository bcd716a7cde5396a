"""Damped step: factors by hand, false reports, no lag is the inner step, and the loop of two lossy links converges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedreuse.config.recipe import Recipe
from fedreuse.core.message import Lag
from fedreuse.core.method import Scope
from fedreuse.core.model import Model
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, zeros
from fedreuse.methods.aggregators.aggregator import Contribution, Statistics
from fedreuse.methods.averaging import Averaging, LastTraining
from fedreuse.methods.lean import Lean
from fedreuse.methods.server_steps.damped import Damped, DampedStep
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Setting

ONE = Schema((TensorSpec("w", (2,), "float64"),))
DIRECTION = Tensors(ONE, np.array([3.0, 4.0]))


def statistics(*of: tuple[float | None, float | None]) -> Statistics:
    """Contributions with these rates and slopes."""
    update = Model(zeros(ONE), zeros(Schema()), zeros(Schema()))
    made = {
        number: Contribution(update, 1.0, follows=follows, slope=slope) for number, (follows, slope) in enumerate(of)
    }
    return Statistics(made, dict.fromkeys(made, 1.0))


def test_the_factor_by_hand() -> None:
    # slope: 0.9 * 0.5 + 0.1 * median(0.2, 0.4, 0.9) = 0.49; rates 0.1, 0.245, 0.3: factor 0.245 / 0.49 = 0.5
    given = statistics((0.1, 0.2), (0.245, 0.9), (0.3, 0.4))
    move, state = DampedStep().step(DIRECTION, Damped(None, 0.5), given)
    assert state.slope == pytest.approx(0.49, rel=1e-12)
    np.testing.assert_allclose(move.values, [1.5, 2.0], rtol=1e-12)


def test_without_lag_or_slope_it_is_the_inner_step() -> None:
    for of in ((None, 0.9), (0.01, None)):
        assert DampedStep().step(DIRECTION, Damped(), statistics(of))[0] is DIRECTION
    assert DampedStep().step(DIRECTION, Damped(None, 0.5), statistics((2.0, 0.5)))[0] is DIRECTION  # follows fast


def test_false_slopes_change_little() -> None:
    # beyond 2 FedAvg itself diverges; infinities and NaN are no numbers, and a negative slope is 0
    for lie, wanted in ((1e30, 0.2), (float("nan"), 0.0), (float("inf"), 0.0), (-5.0, 0.0)):
        assert DampedStep().step(DIRECTION, Damped(), statistics((0.1, lie)))[1].slope == pytest.approx(wanted)


def test_rates_by_hand() -> None:
    # a client that is asked every fourth round and keeps half of the distance: held models are 4 rounds old on average
    assert Lag(2.0, 1.0).rate(0.25) == 0.25
    assert Lag(2.0, 1.0, is_shared=True).rate(0.25) == 1.0
    assert Lag(2.0, 0.0).rate(0.25) is None
    assert Lag(1.0, 2.0).rate(0.25) == 0.0
    # a first request in round 9 that leaves a quarter of the way: the model is 2 rounds old, however rare requests are
    assert Lag(4.0, 1.0, age=8).rate(0.25) == Lag(4.0, 1.0, age=8).rate(0.001) == 0.5


def test_slopes_by_hand() -> None:
    # one step of 0.1 on F = a w^2 / 2 gives the update -0.1 a w: slope 0.1 a; coordinates count by their moves
    first = LastTraining(np.array([1.0, 1.0]), np.array([-0.1, -0.3]))
    second = LastTraining(np.array([3.0, 2.0]), np.array([-0.3, -0.6]))
    assert second.slope_since(first) == pytest.approx((0.2 * 2 + 0.3 * 1) / 5, rel=1e-12)
    assert first.slope_since(first) == first.slope_since(None) == 0.0
    assert LastTraining(np.ones(3), np.ones(3)).slope_since(first) == 0.0


def federation() -> QuadraticFederation:
    """A heterogeneous, strongly convex problem of 4,000 weights, few of them large."""
    rng = np.random.default_rng(0)
    size, clients = 4000, 20
    target = rng.normal(size=size) * rng.exponential(size=size) ** 2
    target *= 20 / np.linalg.norm(target)
    return QuadraticFederation(
        curvatures=rng.uniform(0.2, 2.0, (clients, size)),
        optima=target + 10 * rng.normal(size=(clients, size)) / size**0.5,
        examples=np.full(clients, 10),
        steps=np.full(clients, 5),
        means=np.zeros((clients, 3)),
        variances=np.ones((clients, 3)),
        training=QuadraticTraining(lr=0.1),
        has_buffers=False,
        weights=Schema((TensorSpec("w", (40, 100)),)),
        initial_scale=0.0,
    )


def distances(method: Any, links: Any = None, rounds: int = 100) -> list[float]:
    """Distance to FedAvg's point half-way and at the end."""
    problem = federation()
    pulled = 1 - (1 - 0.1 * problem.curvatures) ** 5
    point = (pulled * problem.optima).sum(0) / pulled.sum(0)
    recipe = Recipe(method, *(links or ({}, {})))
    session = problem.play(recipe.build(), rounds, Setting(5))
    return [float(np.linalg.norm(session.models[at].weights.values - point)) for at in (rounds // 2, rounds)]


@pytest.mark.parametrize("memory", ["per_client", "shared"])
def test_two_lossy_links_converge_to_the_neighbourhood_of_fedavg(memory: Any) -> None:
    found = Lean(0.03, server_memory=memory).resolve(Scope(federation().schema, 20, 5, 100))
    links = found.uplink, found.downlink
    assert isinstance(found.method, Averaging)
    undamped = replace(found.method, step=replace(found.method.step, inner=found.method.step.inner.inner))  # type: ignore[call-arg, attr-defined, type-var]
    dense, damped, free = distances(Averaging()), distances(found.method, links), distances(undamped, links)
    assert free[1] > 5 * dense[1]
    assert free[1] > free[0]  # still growing
    assert damped[1] < 3 * dense[1]
