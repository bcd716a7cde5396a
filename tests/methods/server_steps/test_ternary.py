"""The server step `ternary` on numbers small enough to follow."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors, to_dense
from fedreuse.methods.aggregators.aggregator import Statistics
from fedreuse.methods.server_steps.ternary import TernaryStep

DIRECTION = Tensors(Schema((TensorSpec("w", (2,), "float64"),)), np.array([2.0, -1.0]))
NOTHING = Statistics({}, {})


def test_a_step_by_hand() -> None:
    # of A + D = (2, -1) half the coordinates move: 2; the rest, -1, waits and is then (0 + 2, -1 - 1)
    step = TernaryStep(0.5)
    move, left = step.step(DIRECTION, step.init(DIRECTION), NOTHING)
    assert to_dense(move).values.tolist() == [2.0, 0.0]
    assert left.values.tolist() == [0.0, -1.0]
    assert step.step(DIRECTION, left, NOTHING)[1].values.tolist() == [0.0, -2.0]


def test_a_negative_rate_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"step\.lr must not be negative, got -1"):
        TernaryStep(lr=-1)
