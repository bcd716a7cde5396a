"""The server step `moving_average` on numbers small enough to follow."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.method import Method
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors
from fedreuse.methods.aggregators.aggregator import Statistics
from fedreuse.methods.averaging import Averaging
from fedreuse.methods.server_steps.extrapolation import ExtrapolationStep
from fedreuse.methods.server_steps.momentum import MomentumStep
from fedreuse.methods.server_steps.moving_average import MovingAverageStep
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import NOISY, is_same

SCHEMA = Schema((TensorSpec("w", (2,), "float64"),))
NOTHING = Statistics({}, {})


def tensors(*numbers: float) -> Tensors:
    return Tensors(SCHEMA, np.array(numbers, np.float64))


def test_three_steps_by_hand() -> None:
    # models (4, 0), (4, 8), (0, 8); averages with beta 1/2: (4, 0), (4, 4), (2, 6)
    step = MovingAverageStep(0.5)
    model, state = tensors(0, 0), step.init(tensors(0, 0))
    assert step.evaluated(model, state) is model
    averages = []
    for direction in (tensors(4, 0), tensors(0, 8), tensors(-4, 0)):
        move, state = step.step(direction, state, NOTHING)
        assert move is direction
        model = Tensors(SCHEMA, model.values + move.values)
        averages.append(step.evaluated(model, state).values.tolist())
    assert averages == [[4, 0], [4, 4], [2, 6]]


def test_clients_receive_the_models_of_the_other_step() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    inner = MomentumStep(1.0, 0.5)
    plain, averaged = (
        Session(federation, Method(*Averaging(step=step).halves("dense")), Setting()).advance(6)
        for step in (inner, MovingAverageStep(0.7, inner))
    )
    assert is_same(averaged.method.server.broadcast(averaged.record.state), plain.model)
    wanted = plain.models[1].weights.values
    for model in plain.models[2:]:
        wanted = 0.7 * wanted + 0.3 * model.weights.values
    np.testing.assert_allclose(averaged.model.weights.values, wanted, rtol=1e-12)


def test_without_a_share_of_the_last_average_it_is_the_other_step() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    plain, same = (
        Session(federation, Method(*Averaging(step=step).halves("dense")), Setting()).advance(4)
        for step in (MomentumStep(), MovingAverageStep(0.0, MomentumStep()))
    )
    assert is_same(plain.model, same.model)


def test_what_the_other_step_needs_and_evaluates_counts() -> None:
    step = MovingAverageStep(0.5, ExtrapolationStep())
    assert step.reads_statistics
    assert not MovingAverageStep().reads_statistics


@pytest.mark.parametrize("beta", [-0.1, 1.0, float("nan")])
def test_the_range(beta: float) -> None:
    with pytest.raises(ConfigError, match=r"step\.beta must be in \[0, 1\)"):
        MovingAverageStep(beta)
