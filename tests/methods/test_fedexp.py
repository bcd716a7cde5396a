"""FedExP: two rounds by hand, what it reduces to, and a straight-line reference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.methods.aliases import FedExp
from fedreuse.methods.averaging import Averaging
from fedreuse.methods.server_steps.extrapolation import ExtrapolationStep
from fedreuse.runs.launch import run
from fedreuse.testing.quadratic import QuadraticFederation, QuadraticTraining, Session, Setting
from tests.federation import NOISY, assert_close, build, is_same, plain_problem, top_k
from tests.references.fedexp import fedexp
from tests.tiny import results, tiny


def two_bowls() -> QuadraticFederation:
    """F_i = 1/2 |w - o_i|^2 with o = w_0 + 3 and w_0 - 1; one step of 1 lands on the optimum."""
    drawn = QuadraticFederation.draw(2, QuadraticTraining(lr=1.0), has_buffers=False)
    start = drawn.initial.weights.values
    optima = np.array([start + 3, start - 1])
    ones = np.ones((2, 12))
    return replace(drawn, curvatures=ones, optima=optima, examples=np.array([5, 5]), steps=np.array([1, 1]))


def test_two_rounds_by_hand() -> None:
    # updates 3 and -1 in each of 12 coordinates: D = 1, |D|^2 = 12, mean of squares 12 * (9 + 1) / 2 = 60
    # eps 3: factor 60 / (2 * 15) = 2, w_1 = w_0 + 2. Then updates 1 and -3, D = -1, factor 2: w_2 = w_0, evaluated
    # halfway, at w_0 + 1: at the optimum
    federation = two_bowls()
    session = Session(federation, build("fedexp", eps=3.0), Setting(cohort=2)).advance(2)
    start, first, second = (model.weights.values for model in session.models)
    np.testing.assert_allclose(first, start + 2, rtol=1e-14)
    np.testing.assert_allclose(second, start + 1, rtol=1e-14)
    np.testing.assert_allclose(session.method.server.broadcast(session.record.state).weights.values, start, rtol=1e-13)


def test_clients_that_agree_move_as_in_fedavg() -> None:
    federation = QuadraticFederation.draw(4, NOISY)
    alike = replace(
        federation,
        curvatures=np.tile(federation.curvatures[0], (4, 1)),
        optima=np.tile(federation.optima[0], (4, 1)),
        steps=np.full(4, 3),
        training=replace(NOISY, noise=0.0),
    )
    mine, plain = (Session(alike, build(name), Setting()).advance(4) for name in ("fedexp", "fedavg"))
    assert is_same(mine.method.server.broadcast(mine.record.state), plain.model)
    assert not is_same(mine.model, plain.model)  # the mean of the last two
    before, after = plain.models[3].weights.values, plain.models[4].weights.values
    np.testing.assert_allclose(mine.model.weights.values, (before + after) / 2, rtol=1e-12)


def test_a_large_eps_moves_as_fedavg() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    mine, plain = (
        Session(federation, method, Setting()).advance(4) for method in (build("fedexp", eps=1e9), build("fedavg"))
    )
    assert is_same(mine.method.server.broadcast(mine.record.state), plain.model)


@pytest.mark.parametrize("ratio", [None, 0.3])
def test_equals_the_reference(ratio: float | None) -> None:
    federation = QuadraticFederation.draw(6, NOISY)
    method = build("fedexp", None if ratio is None else top_k(ratio), eps=0.05)
    session = Session(federation, method, Setting()).advance(6)
    problem = plain_problem(federation, 6, 3)
    wanted = fedexp(problem, 0.05, ratio)
    for model, step in zip(session.models[1:], wanted, strict=True):
        assert_close(model, step.evaluated, step.statistics, step.counter)
    sent = session.method.server.broadcast(session.record.state)
    assert_close(sent, wanted[-1].weights, wanted[-1].statistics, wanted[-1].counter)
    assert max(step.factor for step in wanted) > 1  # not FedAvg all along
    for wrong in ("eps once per client", "no half"):
        assert not np.allclose(fedexp(problem, 0.05, ratio, wrong)[-1].weights, wanted[-1].weights, rtol=1e-6)


@pytest.mark.slow
def test_a_network_trains(tmp_path: Path) -> None:
    plain = run(tiny("rounds.count=1"), tmp_path / "fedavg")
    mine = run(tiny("rounds.count=1", "method={name: fedexp, eps: 1e9}"), tmp_path / "fedexp")
    assert results(mine)["model"] == results(plain)["model"]


def test_the_recipe() -> None:
    assert FedExp(0.5).expand() == Averaging(step=ExtrapolationStep(0.5))
    with pytest.raises(ConfigError, match=r"method\.eps must be positive, got 0"):
        FedExp(eps=0)
