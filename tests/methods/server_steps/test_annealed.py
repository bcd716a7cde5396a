"""The server step `annealed` on numbers small enough to follow."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.method import Method
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors
from fedreuse.methods.aggregators.aggregator import Statistics
from fedreuse.methods.averaging import Averaging
from fedreuse.methods.server_steps.annealed import AnnealedStep
from fedreuse.methods.server_steps.damped import DampedStep
from fedreuse.methods.server_steps.momentum import MomentumStep
from fedreuse.methods.server_steps.moving_average import MovingAverageStep
from fedreuse.methods.server_steps.sgd import SgdStep
from fedreuse.testing.quadratic import QuadraticFederation, Session, Setting
from tests.federation import NOISY, is_same

SCHEMA = Schema((TensorSpec("w", (1,), "float64"),))
NOTHING = Statistics({}, {})


def test_six_steps_by_hand() -> None:
    # held for 0.2 * 5 = 1 step, then from 1 to 0 in four steps, and 0 after them
    step = AnnealedStep(5, hold=0.2)
    direction = Tensors(SCHEMA, np.array([8.0]))
    state, moves = step.init(direction), []
    for _ in range(6):
        move, state = step.step(direction, state, NOTHING)
        moves.append(move.values.tolist())
    assert moves == [[8], [6], [4], [2], [0], [0]]


def test_constant_factors_are_the_other_step() -> None:
    federation = QuadraticFederation.draw(training=NOISY)
    steps = (SgdStep(0.5), AnnealedStep(3, 0.5, 0.5), MomentumStep(), AnnealedStep(9, 1.0, 1.0, inner=MomentumStep()))
    sgd, halved, momentum, same = (
        Session(federation, Method(*Averaging(step=step).halves("dense")), Setting()).advance(4) for step in steps
    )
    assert is_same(sgd.model, halved.model)
    assert is_same(momentum.model, same.model)


def test_what_the_other_step_needs_and_evaluates_counts() -> None:
    step = AnnealedStep(5, inner=DampedStep())
    assert step.reads_statistics
    assert step.reads_slopes
    assert not AnnealedStep(5).reads_statistics
    averaged = AnnealedStep(5, inner=MovingAverageStep(0.5))
    direction = Tensors(SCHEMA, np.array([8.0]))
    state = averaged.init(direction)
    total = np.zeros(1)
    for _ in range(2):
        move, state = averaged.step(direction, state, NOTHING)
        total = total + move.values
    # models 6.4 and 6.4 + 4.8; their average with beta 1/2 is 8.8
    np.testing.assert_allclose(averaged.evaluated(Tensors(SCHEMA, total), state).values, [8.8], rtol=1e-15)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"rounds": 0}, r"step\.rounds must be at least 1"),
        ({"rounds": 1, "first": -1.0}, r"step\.first must not be negative"),
        ({"rounds": 1, "last": float("nan")}, r"step\.last must not be negative"),
        ({"rounds": 1, "hold": 1.0}, r"step\.hold must be in \[0, 1\)"),
    ],
)
def test_the_ranges(keys: dict[str, float], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        AnnealedStep(**keys)  # type: ignore[arg-type]
