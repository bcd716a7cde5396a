"""The server step `sgd` on numbers small enough to follow."""

from __future__ import annotations

import numpy as np
import pytest

from fedreuse.core.errors import ConfigError
from fedreuse.core.schema import Schema, TensorSpec
from fedreuse.core.tensors import Tensors
from fedreuse.methods.aggregators.aggregator import Statistics
from fedreuse.methods.server_steps.sgd import SgdStep, chosen_step

DIRECTION = Tensors(Schema((TensorSpec("w", (2,), "float64"),)), np.array([2.0, -1.0]))
NOTHING = Statistics({}, {})


def test_rate_one_is_the_direction_itself() -> None:
    assert SgdStep().step(DIRECTION, None, NOTHING)[0] is DIRECTION
    assert SgdStep(0.5).step(DIRECTION, None, NOTHING)[0].values.tolist() == [1.0, -0.5]


def test_a_step_beside_a_server_lr_is_refused() -> None:
    assert chosen_step(None, 0.5) == SgdStep(0.5)
    assert chosen_step(SgdStep(0.3), 1.0) == SgdStep(0.3)
    with pytest.raises(ConfigError, match=r"method\.server_lr must stay 1 beside method\.step.*got 0\.5"):
        chosen_step(SgdStep(0.3), 0.5)


def test_a_negative_rate_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"step\.lr must not be negative, got -1"):
        SgdStep(lr=-1)
