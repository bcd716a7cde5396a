"""The server step `momentum` on numbers small enough to follow."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors
from fedreuse.methods.aggregators.aggregator import Statistics
from fedreuse.methods.server_steps.momentum import MomentumStep

DIRECTION = Tensors(Schema((TensorSpec("w", (2,), "float64"),)), np.array([2.0, -1.0]))
NOTHING = Statistics({}, {})


def test_two_steps_by_hand() -> None:
    # beta 0.5, lr 2, D = (2, -1) twice: b = (2, -1), then (3, -1.5); moves twice that
    step = MomentumStep(2.0, 0.5)
    move, state = step.step(DIRECTION, step.init(DIRECTION), NOTHING)
    assert move.values.tolist() == [4.0, -2.0]
    assert step.step(DIRECTION, state, NOTHING)[0].values.tolist() == [6.0, -3.0]


def test_a_negative_rate_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"step\.lr must not be negative, got -1"):
        MomentumStep(lr=-1)
